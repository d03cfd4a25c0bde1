"""Decodes for many seconds, every step the same kernels, and says how many steps it was, its memory early and late, and
when it ended. As `captured` it says first what the graph of a step holds; CUPTI then keeps memory for every launch.

    long.py <seconds> [steps at most] [captured]"""

from __future__ import annotations

import json
import sys
import time

import torch

sys.path.insert(0, __file__.rpartition("/")[0])

from decode import DEVICE, capture
from inferscope import step
from model import Decoder


def resident() -> int:
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


def main(seconds: float, most: int, captured: bool) -> None:
    torch.manual_seed(0)
    model, tokens = Decoder().to(DEVICE).eval(), torch.randint(0, 500, (1, 32), device=DEVICE)
    with torch.inference_mode():
        nodes = capture(model, tokens)[2] if captured else None
        end, steps, early = time.monotonic() + seconds, 0, 0
        for _ in step(range(most), name="token"):
            model(tokens)[:, -1].argmax(-1).item()
            steps += 1
            if steps == 2000:
                early = resident()
            if time.monotonic() >= end:
                break
    late = resident()
    said = {"steps": steps, "graph_kernels": nodes, "early_bytes": early or late, "late_bytes": late}
    print(json.dumps(said | {"end_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC)}), flush=True)


main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 40, "captured" in sys.argv[3:])
