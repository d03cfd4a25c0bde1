"""A small transformer as people run one: token by token, in eager mode and as a CUDA graph, with the number of kernels
of a step known from the graph itself. Prints a digest of the results and what is known, as one line of JSON.

    decode.py [eager steps] [graph steps]"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys

import torch

sys.path.insert(0, __file__.rpartition("/")[0])

from model import Decoder

try:
    from inferscope import scope, step
except ImportError:  # For the run without us.
    from contextlib import nullcontext as scope

    def step(iterable, name):
        return iterable


CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def capture(model: torch.nn.Module, tokens: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor, int]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(tokens)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        out = model(tokens)
    nodes = kernel_nodes(graph)
    graph.instantiate()
    return graph, out, nodes


def kernel_nodes(graph: torch.cuda.CUDAGraph) -> int:
    """How many kernels the graph holds, by the driver's own count."""
    library = ctypes.CDLL("libcuda.so.1")
    handle, count = ctypes.c_void_p(graph.raw_cuda_graph()), ctypes.c_size_t()
    assert library.cuGraphGetNodes(handle, None, ctypes.byref(count)) == 0
    nodes = (ctypes.c_void_p * count.value)()
    assert library.cuGraphGetNodes(handle, nodes, ctypes.byref(count)) == 0
    kernels = 0
    for node in nodes:
        kind = ctypes.c_int()
        assert library.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)) == 0
        kernels += kind.value == 0
    return kernels


def main() -> None:
    eager, replays = (int(word) for word in (*sys.argv[1:], "60", "60")[:2])
    torch.manual_seed(0)
    model = Decoder().to(DEVICE).eval()
    tokens = torch.randint(0, 500, (1, 32), device=DEVICE)
    known: dict[str, object] = {"eager_steps": eager}
    with torch.inference_mode():
        for _ in range(5):
            out = model(tokens)
        if CUDA:
            torch.cuda.synchronize()
        for _ in step(range(eager), name="eager"):
            with scope("token"):
                out = model(tokens)
                out[:, -1].argmax(-1).item()
        digest = hashlib.sha256(out.float().cpu().numpy().tobytes()).hexdigest()
        if CUDA:
            graph, out, nodes = capture(model, tokens)
            graph.replay()
            torch.cuda.synchronize()
            for _ in step(range(replays), name="replay"):
                with scope("replayed token"):
                    graph.replay()
                    torch.cuda.synchronize()
            known |= {"graph_steps": replays, "graph_kernels": nodes}
    print(json.dumps(known | {"digest": digest, "layers": Decoder.LAYERS}), flush=True)


if __name__ == "__main__":
    main()
