"""Small programs that each have something to gain from one fix of `inferscope verify`. Prints a JSON line with what
came out, to be compared with and without. Usage: fixes.py tf32|sdpa|channels-last|cudnn-benchmark|pinned-copies [steps]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import torch
from inferscope import step
from torch.nn.attention import SDPBackend, sdpa_kernel

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


def tf32() -> Callable[[int], torch.Tensor]:
    size = 4096 if CUDA else 64
    torch.backends.cuda.matmul.allow_tf32 = False
    weights = torch.randn(size, size, device=DEVICE) / size**0.5
    return lambda number: (weights @ weights).abs().mean()


def sdpa() -> Callable[[int], torch.Tensor]:
    size = (8, 16, 2048, 64) if CUDA else (1, 2, 16, 8)
    query = torch.randn(size, device=DEVICE, dtype=torch.float16 if CUDA else torch.float32)

    def attend(number: int) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(query, query, query).float().abs().mean()

    return attend


def convolutions() -> Callable[[int], torch.Tensor]:
    width, size, batch = (128, 112, 32) if CUDA else (8, 16, 2)
    layers = [torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(6)]
    model = torch.nn.Sequential(*layers).to(DEVICE, torch.float16 if CUDA else torch.float32).eval()
    images = torch.randn(batch, width, size, size, device=DEVICE, dtype=next(model.parameters()).dtype)
    return lambda number: model(images).float().abs().mean()


def pinned() -> Callable[[int], torch.Tensor]:
    batch = torch.zeros(64 if CUDA else 2, 3, 224, 224, device="cpu")

    def copy(number: int) -> torch.Tensor:
        # Filled anew before and after: what arrives is what was there when the copy was asked for.
        batch.fill_(number)
        there = batch.to(DEVICE)
        batch.fill_(-1)
        also = torch.empty_like(there)
        also.copy_(batch.fill_(number + 1))
        batch.fill_(-1)
        return (there.min() + there.max() + also.min() + also.max()) / 4

    return copy


PROGRAMS = {
    "tf32": tf32,
    "sdpa": sdpa,
    "channels-last": convolutions,
    "cudnn-benchmark": convolutions,
    "pinned-copies": pinned,
}


def main() -> None:
    torch.manual_seed(0)
    one = PROGRAMS[sys.argv[1]]()
    results = []
    with torch.inference_mode():
        for number in step(range(int(sys.argv[2]) if len(sys.argv) > 2 else 40), name="request"):
            results.append(one(number).item())
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
