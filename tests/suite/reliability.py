"""How often verdicts of a confidence are right: over the suite's recordings, whole and cut (parts.py), with the
diagnosis as it is now. Says whether a correction of confidence, fitted on all other programs, would have been nearer to
the truth than confidence as it is. `reliability.py --command target/debug/inferscope`; needs pyarrow. Ends with status
1 if verdicts given with 0.8 or more are not right as often as they say, or if the correction would lower them and be
nearer: one that would raise them is not taken, for the rules were made with these programs."""

from __future__ import annotations

import argparse
import itertools
import math
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import judge
from analysis import analyse
from parts import PARTS
from replay import command, expected
from unpack import TRACES

BANDS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WHOLE = "whole"
# A verdict that is never quite sure, nor quite wrong: else one of them decides everything.
NEAREST = 0.01
# Of the correction, in log-odds: shift and slope; and how strongly it is drawn to none, as if so many verdicts said so.
SHIFTS = [step / 10 for step in range(-30, 31)]
SLOPES = [step / 10 for step in range(1, 31)]
PRIOR = 4.0


@dataclass(frozen=True)
class Said:
    program: str
    part: str
    confidence: float
    right: bool


def odds(chance: float) -> float:
    kept = min(1 - NEAREST, max(NEAREST, chance))
    return math.log(kept / (1 - kept))


def corrected(confidence: float, shift: float, slope: float) -> float:
    return 1 / (1 + math.exp(-(shift + slope * odds(confidence))))


def surprise(chance: float, right: bool) -> float:
    """The logarithmic score: 0 where what was sure came true."""
    kept = min(1 - NEAREST, max(NEAREST, chance))
    return -math.log(kept if right else 1 - kept)


def fitted(said: list[Said]) -> tuple[float, float]:
    """Platt's two parameters, drawn towards no correction. Verdicts of one program are worth one together."""
    counts = {program: sum(one.program == program for one in said) for program in {one.program for one in said}}

    def cost(shift: float, slope: float) -> float:
        each = (surprise(corrected(one.confidence, shift, slope), one.right) / counts[one.program] for one in said)
        return sum(each) + PRIOR * (shift**2 + (slope - 1) ** 2) / 2

    return min(((shift, slope) for shift in SHIFTS for slope in SLOPES), key=lambda pair: cost(*pair))


def left_out(said: list[Said]) -> tuple[float, float]:
    """The mean surprise with confidence as it is, and corrected by what all other programs say."""
    as_it_is, with_correction = [], []
    for program in sorted({one.program for one in said}):
        correction = fitted([one for one in said if one.program != program])
        for one in (one for one in said if one.program == program):
            as_it_is.append(surprise(one.confidence, one.right))
            with_correction.append(surprise(corrected(one.confidence, *correction), one.right))
    return statistics.mean(as_it_is), statistics.mean(with_correction)


def band(confidence: float) -> int:
    return min(len(BANDS) - 2, sum(confidence >= edge for edge in BANDS[1:-1]))


def table(said: list[Said]) -> list[str]:
    lines = ["| confidence | verdicts | said, mean | right |", "|---|---|---|---|"]
    for place, (low, high) in enumerate(itertools.pairwise(BANDS)):
        inside = [one for one in said if band(one.confidence) == place]
        if inside:
            mean = statistics.mean(one.confidence for one in inside)
            right = sum(one.right for one in inside)
            share = f"{right} ({100 * right / len(inside):.0f} %)"
            lines.append(f"| {low:.1f} to {high:.1f} | {len(inside)} | {mean:.2f} | {share} |")
    return lines


def overconfident(said: Iterable[Said]) -> str | None:
    """Verdicts that are given as sure must be right as often as they say, by more than chance allows."""
    sure = [one for one in said if one.confidence >= judge.SURE]
    if not sure:
        return None
    mean = statistics.mean(one.confidence for one in sure)
    right = statistics.mean(one.right for one in sure)
    error = 2 * math.sqrt(mean * (1 - mean) / len(sure))
    return (
        None if right >= mean - error else f"{100 * right:.0f} % of sure verdicts are right, said: {100 * mean:.0f} %"
    )


def collected(binary: Path) -> list[Said]:
    said = []
    for program in expected(TRACES):
        for part in (WHOLE, *PARTS):
            with tempfile.TemporaryDirectory(prefix="inferscope-part-") as folder:
                trace = TRACES / program.name
                if part != WHOLE:
                    trace = Path(shutil.copytree(trace, Path(folder) / program.name))
                    PARTS[part](trace)
                verdict = judge.judge(program, analyse(binary, trace))
            said.append(Said(program.name, part, verdict.confidence or 0.0, verdict.right))
    return said


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", help="the inferscope to run [default: the one on PATH]")
    said = collected(command(options.parse_args().command))
    for name, rows in {
        "whole recordings": [one for one in said if one.part == WHOLE],
        "whole and cut": said,
    }.items():
        print(f"{name}:", *table(rows), sep="\n")
    wrong = [f"{one.program} ({one.part}): {one.confidence:.2f}" for one in said if not one.right]
    print("wrong:", *(wrong or ["none"]), sep="\n  ")
    plain, with_correction = left_out(said)
    becomes = {at: round(corrected(at, *fitted(said)), 2) for at in (0.3, 0.5, judge.SURE, 0.95)}
    print(f"surprise, each program left out: {plain:.3f} as it is, {with_correction:.3f} corrected")
    print("the correction would say", *(f"{at} → {now}" for at, now in becomes.items()))
    lines = [line for line in [overconfident(said)] if line]
    if with_correction < plain and becomes[judge.SURE] < judge.SURE:
        lines.append(f"a correction to {becomes[judge.SURE]} in place of {judge.SURE} is nearer to what came true")
    print(*(f"NOT REACHED: {line}" for line in lines), sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
