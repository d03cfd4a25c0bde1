"""Programs of the generator on the CPU: planted and fixed compute the same, each is recorded and judged. Judged
leniently: a busy machine changes what is worth how much, and is rightly named first. The figures are the GPU's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suite"))

import seeds_judge

RUNNER = Path(seeds_judge.__file__).with_name("seeds.py")
MEMORY = RUNNER.with_name("memory_seeds.py")
# A hook that keeps outputs, a closure, a cache that fills up, workspaces of few lengths.
MEMORY_SEEDS = "2,3,9,20"
GROUPS = {
    # Tokenising, detokenising, logging, collecting, and two in which nothing is planted.
    "marked": (8, 11, 35, 39, 16, 20),
    # A lock, a growing cache, collecting, rows one by one, and nothing.
    "unmarked": (0, 3, 6, 12, 15),
    # A mask that is made anew, a lock, and rows one by one; marked by our API.
    "data flow": (10, 29, 38),
}
# Whatever else runs here may come first in one of them.
MOST_WRONG = 1
# What is found however little it is worth here, at whatever place among the findings.
FOUND = {6: "gc-pauses", 10: "repeated-work", 12: "batchable-loop", 29: "waits-in-step", 38: "batchable-loop"}


def judged(folder: Path, seeds: tuple[int, ...]) -> tuple[list[dict[str, Any]], str]:
    command = shutil.which("inferscope")
    assert command
    words = [sys.executable, RUNNER, "--seeds", ",".join(map(str, seeds)), "--device", "cpu", "--small", "--own"]
    done = subprocess.run(
        [*words, "--seconds", "0.8", "--both-seconds", "0.5", "--out", folder, "--command", command],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads((folder / "results.json").read_text(encoding="utf-8"))["rows"]
    return [seeds_judge.without_machine(row) for row in rows], done.stdout


@pytest.mark.parametrize("group", GROUPS)
def test_generated_programs(tmp_path: Path, group: str) -> None:
    rows, told = judged(tmp_path, GROUPS[group])
    found = seeds_judge.figures(rows)
    assert found["programs"] == len(GROUPS[group]), told
    for fault in ("failed", "unmeasured", "not_the_same", "steps_of_a_library"):
        assert not found[fault], told
    assert found["steps_right_percent"] == 100.0, told
    if group == "marked":
        right = round(found["asked"] * found["first_right_percent"] / 100)
        assert right >= found["asked"] - MOST_WRONG, told
    codes = {row["seed"]: {finding["code"] for finding in row["findings"]} for row in rows}
    for seed in set(FOUND) & set(codes):
        assert FOUND[seed] in codes[seed], told
    assert (tmp_path / "traces.tar.gz").stat().st_size > 0


def test_programs_whose_memory_is_known(tmp_path: Path) -> None:
    """What they keep is the same however busy the machine is: no verdict may be wrong."""
    command = shutil.which("inferscope")
    assert command
    words = [sys.executable, MEMORY, "--seeds", MEMORY_SEEDS, "--device", "cpu", "--hold", "--command", command]
    told = subprocess.run([*words, "--output", tmp_path / "rows.json"], capture_output=True, text=True, timeout=280)
    assert told.returncode == 0, told.stdout + told.stderr[-2000:]
    found = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["totals"]
    assert (found["right"], found["healthy"]) == (4, 2), told.stdout


CHECKS = """
import sys, types
sys.path.insert(0, sys.argv[1])
from generate.memory_recipe import memory_recipe, memory_source
for seed in range(11):
    made = types.ModuleType(f"seed_{seed}")
    exec(compile(memory_source(memory_recipe(seed, "cpu")), made.__name__, "exec"), vars(made))
    assert made.check(None) == 0, seed
"""


def test_programs_whose_memory_is_known_compute_the_same_when_fixed() -> None:
    workloads = RUNNER.parents[1] / "workloads"
    told = subprocess.run([sys.executable, "-c", CHECKS, workloads], capture_output=True, text=True, timeout=280)
    assert told.returncode == 0, told.stderr[-2000:]
    assert told.stdout.count('"check": true') == 11
