"""One model of gpu_model.py that stays loaded and runs for as long as each line of its standard input says
(`0.3 plain`), every step timed: bursts of several such processes can be interleaved within a second."""

from __future__ import annotations

import json
import os
import statistics
import sys

import gpu_model
import torch


def main(name: str) -> None:
    if cores := os.environ.get("BURST_CORES"):
        os.sched_setaffinity(0, range(int(cores)))
    torch.manual_seed(0)
    work = {made.__name__: made for made in gpu_model.ALL}[name.replace("-", "_")]
    with torch.inference_mode():
        step = work()
        for _ in range(3 * gpu_model.WARM_UP):
            step()
        gpu_model.wait()
        print("ready", flush=True)
        for line in sys.stdin:
            seconds, mode = line.split()
            step()  # The caches are another process's by now.
            if mode == "plain":
                times = gpu_model.run(step, float(seconds))
            else:
                times, _ = gpu_model.profiled(step, float(seconds), mode, ".")
            said = {"steps": len(times), "median_ns": statistics.median(times), "mean_ns": statistics.mean(times)}
            print(json.dumps(said), flush=True)


main(sys.argv[1])
