"""What an analysis said about a program against what was planted in it, and over all programs the figures that the
suite is there for. The one definition of a right verdict: the recording run and the replay in CI both use it."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Any

from catalogue import HEALTHY, Program

# They judge the recording, not the program.
PROFILE_HEALTH = (
    "no-steps-found",
    "warmup-in-window",
    "unstable-iterations",
    "dropped-records",
    "work-from-before-window",
    "clock-residual",
    "overhead-in-window",
)
# Percent of the step. A finding that promises less is worth knowing and blames nobody. It is `MIN_GAIN` of
# crates/diagnosis/src/leading.rs, the least that the answer names as a cause (test_judge.py holds the two together).
# Where steps differ much the answer asks for more; here noise is no excuse for what a healthy program was promised.
BLAME = 3.0
# The figures to reach.
RIGHT_PERCENT = 95.0
SURE = 0.8
MEDIAN_POINTS = 5.0
WITHIN_POINTS = 15.0
WITHIN_PERCENT = 90.0
UNKNOWN_PERCENT = 5.0
REPLAY_PERCENT = 2.0

Analysis = dict[str, Any]


@dataclass
class Verdict:
    program: Program
    said: str
    right: bool
    # None: nothing was said that has one.
    confidence: float | None
    gain: dict[str, float] | None
    # The second planted bottleneck was found, too; None: there is none.
    second: bool | None
    unknown_percent: float | None
    idle_sum: float | None
    replay_percent: float | None

    def row(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "program"} | {
            "program": self.program.name,
            "expect": self.program.expect,
        }


def middle(finding: dict[str, Any]) -> float | None:
    gain = finding.get("gain_percent")
    return None if gain is None else gain["mid"]


def first(analysis: Analysis) -> dict[str, Any] | None:
    """The first finding about the program that blames something; where none does, the first that only states. A place
    beside which all that is promised is little (`largest_without_gain` in leading.rs) stands before it: that is the
    verdict."""
    about = about_the_program(analysis)
    if about and about[0]["code"] == "hot-line" and middle(about[0]) is None:
        return about[0]
    return blamed(analysis) or next((one for one in about if middle(one) is None), None)


def blamed(analysis: Analysis) -> dict[str, Any] | None:
    """Whatever stands before it: a healthy program has none."""
    return next((one for one in about_the_program(analysis) if (middle(one) or 0.0) >= BLAME), None)


def about_the_program(analysis: Analysis) -> list[dict[str, Any]]:
    return [one for one in analysis["findings"] if one["code"] not in PROFILE_HEALTH]


def judge(program: Program, analysis: Analysis) -> Verdict:
    found = blamed(analysis) if program.expect == HEALTHY else first(analysis)
    if program.expect == HEALTHY and found is None:
        # What sets the pace may be said of a healthy program: that is no blame.
        said, right, confidence = HEALTHY, True, analysis["bottleneck"]["confidence"]
    else:
        said = found["code"] if found else HEALTHY
        right = said in program.accepted
        confidence = found["confidence"] if found else analysis["bottleneck"]["confidence"]
    codes = {one["code"] for one in analysis["findings"]}
    idle = analysis.get("idle_breakdown") or []
    unknown = [row["percentage"] for row in idle if row["category"] == "unknown"]
    return Verdict(
        program,
        said,
        right,
        confidence,
        found.get("gain_percent") if found and said == found["code"] else None,
        None if program.second is None else program.second in codes,
        round(sum(unknown), 3) if idle else None,
        round(sum(row["percentage"] for row in idle), 3) if idle else None,
        (analysis.get("replay") or {}).get("error_percent"),
    )


def error(verdict: Verdict, measured: dict[str, Any] | None) -> float | None:
    """Points of step time between predicted and measured. None: there is nothing to compare."""
    if not verdict.right or verdict.gain is None or not measured or measured.get("gain_percent") is None:
        return None
    return round(abs(verdict.gain["mid"] - measured["gain_percent"]), 2)


def matrix(verdicts: list[Verdict]) -> list[str]:
    """Expected against said, as lines: one for each pair that occurred, wrong ones marked."""
    pairs = Counter((one.program.expect, one.said, one.right) for one in verdicts)
    wide = max(len(expect) for expect, _, _ in pairs)
    return [
        f"  {'  ' if right else '! '}{expect:{wide}} → {said:{wide}} {count}"
        for (expect, said, right), count in sorted(pairs.items(), key=lambda pair: (pair[0][2], pair[0][0]))
    ]


def figures(verdicts: list[Verdict], measured: dict[str, dict[str, Any]]) -> dict[str, Any]:
    def percent(part: int, whole: int) -> float | None:
        return round(100 * part / whole, 1) if whole else None

    sure = [one for one in verdicts if (one.confidence or 0.0) >= SURE]
    healthy = [one for one in verdicts if one.program.expect == HEALTHY]
    errors = [found for one in verdicts if (found := error(one, measured.get(one.program.name))) is not None]
    bands: dict[str, list[int]] = {}
    for one in verdicts:
        low = min(int((one.confidence or 0.0) * 5), 4) / 5
        band = bands.setdefault(f"{low:.1f} to {low + 0.2:.1f}", [0, 0])
        band[0] += one.right
        band[1] += 1
    unknown = [one.unknown_percent for one in verdicts if one.unknown_percent is not None]
    replay = [one.replay_percent for one in verdicts if one.replay_percent is not None]
    return {
        "programs": len(verdicts),
        "right_percent": percent(sum(one.right for one in verdicts), len(verdicts)),
        "healthy_blamed": [one.program.name for one in healthy if not one.right],
        "seconds_missed": [one.program.name for one in verdicts if one.second is False],
        "right_of_sure_percent": percent(sum(one.right for one in sure), len(sure)),
        "bands": {name: {"right": right, "of": count} for name, (right, count) in sorted(bands.items())},
        "gains_compared": len(errors),
        "gain_median_error": round(statistics.median(errors), 2) if errors else None,
        "gain_within_15_percent": percent(sum(one <= WITHIN_POINTS for one in errors), len(errors)),
        "unknown_idle_most_percent": max(unknown, default=None),
        "idle_sums": sorted({one.idle_sum for one in verdicts if one.idle_sum is not None}),
        "replay_most_percent": max(replay, default=None),
    }


def unmeasured(found: dict[str, Any]) -> list[str]:
    """Figures of a whole suite that there is nothing to compute from: then they are not reached, either."""
    return [f"{name} was not measured" for name, value in found.items() if value is None]


def missed(found: dict[str, Any]) -> list[str]:
    """Which of the figures to reach were not."""
    lines = []

    def at_least(name: str, level: float) -> None:
        if found[name] is not None and found[name] < level:
            lines.append(f"{name} is {found[name]}, to reach: {level} or more")

    def at_most(name: str, level: float) -> None:
        if found[name] is not None and found[name] > level:
            lines.append(f"{name} is {found[name]}, to reach: {level} or less")

    at_least("right_percent", RIGHT_PERCENT)
    at_least("right_of_sure_percent", RIGHT_PERCENT)
    at_most("gain_median_error", MEDIAN_POINTS)
    at_least("gain_within_15_percent", WITHIN_PERCENT)
    at_most("unknown_idle_most_percent", UNKNOWN_PERCENT)
    at_most("replay_most_percent", REPLAY_PERCENT)
    lines += [f"{name} is healthy and was blamed" for name in found["healthy_blamed"]]
    lines += [f"the second bottleneck of {name} was not found" for name in found["seconds_missed"]]
    # Each row is rounded to a thousandth, and there are dozens.
    lines += [f"idle time sums to {one} %" for one in found["idle_sums"] if abs(one - 100.0) > 0.1]
    return lines
