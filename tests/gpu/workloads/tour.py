"""One of everything that a GPU is asked for, in numbers that are known: kernels, copies by kind, memsets, waits,
streams, a CUDA graph, memory from the driver and from a pool, NVTX ranges. Each part is in a scope of its own; what is
known of it is printed as one line of JSON. On a machine without CUDA only the parts that need none run."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path

import torch
from inferscope import scope

KERNELS, COPIES, MIB = 500, 20, 1 << 20
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def loop() -> dict[str, int]:
    """Nothing but additions: a kernel each."""
    x = torch.zeros(1024, device=DEVICE)
    x.add_(1)
    wait()
    with scope("loop"):
        for _ in range(KERNELS):
            x.add_(1)
        wait()
    assert x[0].item() == KERNELS + 1
    return {"loop_kernels": KERNELS}


def copies() -> dict[str, int]:
    pageable = torch.ones(MIB, dtype=torch.uint8)
    pinned = pageable.pin_memory() if CUDA else pageable.clone()
    there, other = (
        torch.empty(MIB, dtype=torch.uint8, device=DEVICE),
        torch.empty(MIB, dtype=torch.uint8, device=DEVICE),
    )
    wait()
    with scope("pageable"):
        for _ in range(COPIES):
            there.copy_(pageable)
    with scope("pinned"):
        for _ in range(COPIES):
            there.copy_(pinned, non_blocking=True)
        wait()
    with scope("back"):
        for _ in range(COPIES):
            pinned.copy_(there, non_blocking=True)
        wait()
    with scope("across"):
        for _ in range(COPIES):
            other.copy_(there)
        wait()
    return {"copies": COPIES, "copy_bytes": MIB}


def streams() -> dict[str, int]:
    if not CUDA:
        return {}
    sides = [torch.cuda.Stream() for _ in range(3)]
    x = [torch.zeros(1024, device=DEVICE) for _ in sides]
    wait()
    with scope("streams"):
        for side, tensor in zip(sides, x, strict=True):
            with torch.cuda.stream(side):
                for _ in range(50):
                    tensor.add_(1)
        wait()
    return {"streams": len(sides), "streams_kernels": 150}


def graph() -> dict[str, int]:
    if not CUDA:
        return {}
    x = torch.zeros(1024, device=DEVICE)
    for _ in range(3):
        x.add_(1).mul_(2)
    wait()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(10):
            x.add_(1).mul_(2)
    captured.replay()
    wait()
    with scope("graph"):
        for _ in range(30):
            captured.replay()
        wait()
    return {"graph_replays": 30, "graph_nodes": 20}


def runtime() -> ctypes.CDLL | None:
    """The CUDA runtime that PyTorch has loaded."""
    maps = Path("/proc/self/maps").read_text()
    found = re.search(r"/\S+/libcudart[^\s/]*\.so[\d.]*", maps)
    return ctypes.CDLL(found.group(0)) if found else None


def memory() -> dict[str, int]:
    library = runtime() if CUDA else None
    if library is None:
        return {}
    with scope("memory"):
        for _ in range(5):
            pointer = ctypes.c_void_p()
            assert library.cudaMallocAsync(ctypes.byref(pointer), ctypes.c_size_t(3 * MIB), None) == 0
            assert library.cudaMemsetAsync(pointer, 0, ctypes.c_size_t(3 * MIB), None) == 0
            assert library.cudaFreeAsync(pointer, None) == 0
        for _ in range(4):
            pointer = ctypes.c_void_p()
            assert library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(5 * MIB)) == 0
            assert library.cudaFree(pointer) == 0
        wait()
    return {"pool_allocations": 5, "pool_bytes": 3 * MIB, "memsets": 5, "allocations": 4, "allocation_bytes": 5 * MIB}


def nvtx() -> dict[str, int]:
    if not CUDA:
        return {}
    x = torch.zeros(1024, device=DEVICE)
    wait()
    for number in range(7):
        torch.cuda.nvtx.range_push(f"outer {number % 2}")
        torch.cuda.nvtx.range_push("inner")
        x.add_(1)
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.mark("a mark")
    wait()
    return {"nvtx_ranges": 14, "nvtx_marks": 1}


def waits() -> dict[str, int]:
    if not CUDA:
        return {}
    x = torch.zeros(1024, device=DEVICE)
    event = torch.cuda.Event()
    with scope("waits"):
        for _ in range(6):
            x.add_(1)
            torch.cuda.synchronize()
        for _ in range(6):
            x.add_(1)
            torch.cuda.current_stream().synchronize()
        for _ in range(6):
            x.add_(1)
            event.record()
            event.synchronize()
    return {"waits_each": 6}


def main() -> None:
    known: dict[str, int] = {}
    for part in (loop, copies, streams, graph, memory, nvtx, waits):
        known |= part()
    print(json.dumps(known), flush=True)


main()
