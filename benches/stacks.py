"""How much slower a workload runs while its stacks are sampled 100 times a second: nothing, InferScope, py-spy,
pyinstrument and Scalene, one after the other, many rounds, in one run. The workload measures itself.

The plain run comes twice a round: how much the two differ is the noise that any other difference has to beat."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(sys.executable)
WORKLOAD = Path(__file__).parent / "workloads" / "steady.py"


def commands(folder: Path, work: str) -> dict[str, list[str | Path]]:
    bin_folder = PYTHON.parent
    workload = [WORKLOAD, work]
    return {
        "plain": [PYTHON, *workload],
        "inferscope": [bin_folder / "inferscope", "run", "--quiet", "--output", folder / "t", "--", PYTHON, *workload],
        "again": [PYTHON, *workload],
        "py-spy": [bin_folder / "py-spy", "record", "-r", "100", "-o", folder / "p.svg", "--", PYTHON, *workload],
        "pyinstrument": [PYTHON, "-m", "pyinstrument", "-i", "0.01", "-o", folder / "p.txt", *workload],
        "scalene": [PYTHON, "-m", "scalene", "run", "--cpu-only", "-o", folder / "s.json", *workload],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--work", default="12000", help="how much the workload does; some seconds at best")
    chosen = options.parse_args()
    wall: dict[str, list[int]] = {}
    processor: dict[str, list[int]] = {}
    for _ in range(chosen.rounds):
        folder = Path(tempfile.mkdtemp(prefix="inferscope-bench-"))
        try:
            for name, command in commands(folder, chosen.work).items():
                done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
                said = re.search(r"WALL_NS=(\d+) PROCESSOR_NS=(\d+)", done.stdout)
                if not said:
                    raise SystemExit(f"{name} did not run the workload: {done.stderr[-400:]}")
                wall.setdefault(name, []).append(int(said.group(1)))
                processor.setdefault(name, []).append(int(said.group(2)))
        finally:
            shutil.rmtree(folder)
    result = {
        name: {
            "wall": statistics.median(a / b for a, b in zip(wall[name], wall["plain"], strict=True)),
            "wall_least": min(wall[name]) / min(wall["plain"]),
            "processor": statistics.median(a / b for a, b in zip(processor[name], processor["plain"], strict=True)),
            "processor_least": min(processor[name]) / min(processor["plain"]),
        }
        for name in wall
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
