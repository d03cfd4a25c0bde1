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
