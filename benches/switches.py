"""What a part of recording that is on by default adds: the same workload recorded with it and without it, many rounds
in one run, each round in another order. The workload measures itself.

With it comes twice a round: how much the two differ is the noise that any other difference has to beat. Native stacks
at 100 Hz on code that is native most of the time; operator looks in a run of a minute of a PyTorch model on the CPU,
where PyTorch is installed."""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PYTHON = Path(sys.executable)
INFERSCOPE = PYTHON.with_name("inferscope")
WORKLOADS = Path(__file__).parent / "workloads"
# Calls of the model before any is measured, and how many tell how fast it is here.
WARM, TRIAL = 200, 2000

Took = dict[str, list[tuple[int, int]]]


def measured(command: list[str | Path], folder: Path) -> tuple[int, int]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    said = re.search(r"WALL_NS=(\d+) PROCESSOR_NS=(\d+)", done.stdout)
    if not said:
        raise SystemExit(f"{' '.join(map(str, command))} did not run the workload: {done.stderr[-400:]}")
    return int(said.group(1)), int(said.group(2))


def ratios(took: Took) -> dict[str, dict[str, float]]:
    """Medians over the rounds: with it against without it, and the one run with it against the other."""

    def ratio(one: str, other: str, place: int) -> float:
        return statistics.median(a[place] / b[place] for a, b in zip(took[one], took[other], strict=True))

    pairs = {"added": ("on", "off"), "noise": ("on", "again")}
    return {name: {"wall": ratio(*pair, 0), "processor": ratio(*pair, 1)} for name, pair in pairs.items()}


def rounds(count: int, flag: str, workload: list[str | Path]) -> dict[str, dict[str, float]]:
    took: Took = {}
    order = random.Random(0)
    for _ in range(count):
        cases = ["on", "again", "off"]
        order.shuffle(cases)
        for name in cases:
            with tempfile.TemporaryDirectory(prefix="inferscope-bench-") as folder:
                switch = f"{flag}={'false' if name == 'off' else 'true'}"
                ours = [INFERSCOPE, "run", "--quiet", "--output", Path(folder) / "t", switch, "--", PYTHON]
                took.setdefault(name, []).append(measured([*ours, *workload], Path(folder)))
    return ratios(took)


def operators(count: int, seconds: float) -> dict[str, Any]:
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        return {"missing": "no PyTorch in this Python"}
    script = WORKLOADS / "model_steps.py"
    with tempfile.TemporaryDirectory(prefix="inferscope-bench-") as folder:
        wall, _ = measured([PYTHON, script, str(TRIAL), str(WARM)], Path(folder))
    calls = max(TRIAL, round(TRIAL * seconds * 1e9 / wall))
    return {"seconds": seconds, **rounds(count, "--ops", [script, str(calls), str(WARM)])}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--work", default="300", help="how often the native workload does its work; some seconds")
    options.add_argument("--seconds", type=float, default=60, help="how long the model runs")
    options.add_argument("--only", choices=["native", "ops"])
    chosen = options.parse_args()
    result: dict[str, Any] = {}
    if chosen.only != "ops":
        result["native"] = rounds(chosen.rounds, "--native", [WORKLOADS / "native.py", chosen.work])
    if chosen.only != "native":
        result["ops"] = operators(max(3, chosen.rounds // 3), chosen.seconds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
