"""How much slower a workload runs while its stacks are sampled 100 times a second: nothing, InferScope, py-spy,
pyinstrument and Scalene, many rounds in one run, each round in another order. The workload measures itself.

The plain run comes twice a round. The others are compared with the mean of the two, and how much the two differ is the
noise that any other difference has to beat."""

from __future__ import annotations

import argparse
import json
import random
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


def ratio(name: str, took: dict[str, list[int]]) -> float:
    """The median over the rounds of what a case took against the plain runs of its round."""
    plain = took["again"] if name == "plain" else took["plain"] if name == "again" else None
    pairs = zip(took[name], plain or map(statistics.mean, zip(took["plain"], took["again"], strict=True)), strict=True)
    return statistics.median(a / b for a, b in pairs)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--work", default="8000", help="how much the workload does; some seconds at best")
    chosen = options.parse_args()
    wall: dict[str, list[int]] = {}
    processor: dict[str, list[int]] = {}
    order = random.Random(0)
    for _ in range(chosen.rounds):
        folder = Path(tempfile.mkdtemp(prefix="inferscope-bench-"))
        try:
            cases = list(commands(folder, chosen.work).items())
            order.shuffle(cases)
            for name, command in cases:
                done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
                said = re.search(r"WALL_NS=(\d+) PROCESSOR_NS=(\d+)", done.stdout)
                if not said:
                    raise SystemExit(f"{name} did not run the workload: {done.stderr[-400:]}")
                wall.setdefault(name, []).append(int(said.group(1)))
                processor.setdefault(name, []).append(int(said.group(2)))
        finally:
            shutil.rmtree(folder)
    result = {name: {"wall": ratio(name, wall), "processor": ratio(name, processor)} for name in wall}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
