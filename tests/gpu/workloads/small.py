"""Short runs whose traces are small enough to be kept as fixtures: `small.py decode|bert|copies|graphs`."""

from __future__ import annotations

import sys

import torch
from inferscope import scope, step

sys.path.insert(0, __file__.rpartition("/")[0])

from model import Decoder, Encoder

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def model_steps(model: torch.nn.Module, tokens: torch.Tensor, count: int) -> None:
    model.to(DEVICE).eval()
    for _ in range(3):
        model(tokens)
    for _ in step(range(count), name="step"):
        out = model(tokens)
        out[:, -1].argmax(-1).tolist()


def decode() -> None:
    model_steps(Decoder(), torch.randint(0, 500, (1, 16), device=DEVICE), 12)


def bert() -> None:
    model_steps(Encoder(), torch.randint(0, 500, (16, 128), device=DEVICE), 8)


def copies() -> None:
    images = torch.randn(64, 3, 112, 112)
    pinned = images.pin_memory() if CUDA else images
    convolution = torch.nn.Conv2d(3, 16, 3).to(DEVICE)
    for number in step(range(10), name="batch"):
        with scope("load"):
            batch = (pinned if number % 2 else images).to(DEVICE, non_blocking=True)
        with scope("infer"):
            out = convolution(batch).mean((1, 2, 3))
        with scope("store"):
            out.cpu()


def graphs() -> None:
    model, tokens = Decoder().to(DEVICE).eval(), torch.randint(0, 500, (1, 16), device=DEVICE)
    for _ in range(3):
        model(tokens)
    if not CUDA:
        return
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(tokens)
    for _ in step(range(12), name="replay"):
        graph.replay()
        torch.cuda.synchronize()


with torch.inference_mode():
    torch.manual_seed(0)
    {work.__name__: work for work in (decode, bert, copies, graphs)}[sys.argv[1]]()
