"""One model of gpu_model.py for some seconds after its warm-up; says when every step began and ended, in nanoseconds of
CLOCK_MONOTONIC."""

from __future__ import annotations

import json
import sys
import time

import gpu_model
import torch


def main(name: str, warm_up: float, seconds: float) -> None:
    torch.manual_seed(0)
    work = {made.__name__: made for made in gpu_model.ALL}[name.replace("-", "_")]
    steps = []
    with torch.inference_mode():
        step = work()
        gpu_model.run(step, warm_up)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic_ns()
            step()
            steps.append((began, time.monotonic_ns()))
        gpu_model.wait()
    print(json.dumps(steps))


main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
