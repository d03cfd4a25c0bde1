"""Launches tiny kernels for some seconds and says how many, and how the memory of this process grew meanwhile: as a
whole, by what is mapped where, and in each fifth of the time.

    gpu_memory.py <seconds> [adds | captured | dropped | late | replayed] [folder for a trace]

`captured` captures the additions as a CUDA graph before it launches them one by one, `dropped` lets go of that graph
first, `replayed` replays it, and `late` begins to record only after the capture, where it is given a folder."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import gpu_model
import torch

WARM_UP_S = 2
LAUNCHES = 400  # Of a step: see gpu_model.adds.
PARTS = 5


def mapped() -> dict[str, int]:
    """Bytes in memory, by the name of the mapping."""
    found: dict[str, int] = {}
    name = ""
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if "-" in words[0] and ":" not in words[0]:
                name = words[5] if len(words) > 5 else "anonymous"
            elif words[0] == "Rss:":
                found[name] = found.get(name, 0) + (int(words[1]) << 10)
    return found


def captured() -> Callable[[], None]:
    """The additions of a step as a graph. Its nodes count as launches."""
    x = torch.zeros(8, device=gpu_model.DEVICE)
    x.add_(1.0)
    gpu_model.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            x.add_(1.0)

    def step() -> None:
        graph.replay()
        gpu_model.wait()

    return step


def main(seconds: str, program: str = "adds", folder: str = "") -> None:
    with torch.inference_mode():
        step = gpu_model.adds()
        if program != "adds":
            replay = captured()
            replay()
            step = replay if program == "replayed" else step
            if program == "dropped":
                del replay
                gpu_model.wait()
        if folder:
            import inferscope

            inferscope.start(output=folder)
        gpu_model.run(step, WARM_UP_S)
        before = last = mapped()
        launched, parts = 0, []
        for _ in range(PARTS):
            end, so_far = time.monotonic() + float(seconds) / PARTS, launched
            while time.monotonic() < end:
                launched += LAUNCHES * len(gpu_model.run(step, 0.5))
            now = mapped()
            parts.append(round((sum(now.values()) - sum(last.values())) / max(launched - so_far, 1), 1))
            last = now
    grown = {name: last[name] - before.get(name, 0) for name in last}
    most = sorted(grown.items(), key=lambda one: -one[1])[:4]
    total = sum(last.values()) - sum(before.values())
    print(json.dumps({"launched": launched, "grown": total, "where": dict(most), "parts": parts}), flush=True)


main(*sys.argv[1:])
