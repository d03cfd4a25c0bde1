"""`make gpu-bench`: how much slower a PyTorch CUDA loop runs under `inferscope run`. Separate processes, interleaved,
many rounds; the plain run comes twice a round, and how much those two differ is the noise."""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from machine import WORKLOAD, inferscope, require_gpu


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=5000)
    chosen = options.parse_args()
    print(f"gpu-bench on {require_gpu('gpu-bench')}")
    command, environ = inferscope()
    workload = [sys.executable, WORKLOAD, str(chosen.steps)]
    took: dict[str, list[int]] = {}
    for number in range(chosen.rounds):
        with tempfile.TemporaryDirectory() as folder:
            recorded = [command, "run", "--quiet", "--output", Path(folder) / "trace"]
            cases = {
                "plain": workload,
                "inferscope run": [*recorded, "--", *workload],
                "plain again": workload,
                "inferscope run --rate 1000": [*recorded[:4], f"{folder}/2", "--rate", "1000", "--", *workload],
                "inferscope run --calls": [*recorded[:4], f"{folder}/3", "--calls", "--", *workload],
            }
            for name, case in cases.items():
                done = subprocess.run([str(word) for word in case], capture_output=True, text=True, env=environ)
                said = re.search(r"WALL_NS=(\d+)", done.stdout)
                if not said:
                    raise SystemExit(f"{name}: the workload did not run: {done.stderr[-500:]}")
                took.setdefault(name, []).append(int(said.group(1)))
        print(f"round {number + 1} of {chosen.rounds}", flush=True)
    for name, times in took.items():
        ratios = [a / b for a, b in zip(times, took["plain"], strict=True)]
        step_us = statistics.median(times) / chosen.steps / 1000
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{name:28} {step_us:8.1f} us a step, {statistics.median(ratios):.3f} x plain (rounds: {spread})")


if __name__ == "__main__":
    main()
