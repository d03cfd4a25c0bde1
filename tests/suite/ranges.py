"""How far promised gains were from measured ones, and what ranges made of that hold: `ranges.py` prints, from
crates/diagnosis/src/calibration/measured.csv alone, each program left out in turn, and ends with status 1 when too few
or too many lie inside. The same computation as crates/diagnosis/src/calibration/misses.rs, where the reasons are."""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parents[2] / "crates" / "diagnosis" / "src" / "calibration" / "measured.csv"
# As in misses.rs.
INSIDE = 0.9
POOL = 8
HALF_OF_95 = 0.344
# What is asked of them, in percent: too many inside is as wrong as too few, for then they are wider than they need be.
FEWEST_INSIDE, MOST_INSIDE = 85.0, 95.0
WITHIN_POINTS = 15.0
# Two digits in the table, two in a report.
ROUNDING = 0.06

Range = tuple[float, float, float]


@dataclass(frozen=True)
class Fix:
    change: str
    # Low, mid, high.
    promised: Range
    measured: float
    program: str

    def miss(self) -> float:
        return abs(angle(self.measured) - angle(self.promised[1]))


@dataclass(frozen=True)
class LeftOut:
    """A fix, and the range that all other programs give it."""

    fix: Fix
    low: float
    high: float

    def inside(self) -> bool:
        return self.low <= min(100.0, max(0.0, self.fix.measured)) <= self.high

    def off(self) -> float:
        return abs(self.fix.promised[1] - self.fix.measured)


def angle(percent: float) -> float:
    return math.asin(math.sqrt(min(1.0, max(0.0, percent / 100))))


def percent(value: float) -> float:
    return float(100 * math.sin(min(math.pi / 2, max(0.0, value))) ** 2)


def quantile(values: Iterable[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered), math.ceil(part * (len(ordered) + 1))) - 1]


class Misses:
    def __init__(self, fixes: list[Fix]) -> None:
        self.pool = statistics.median(fix.miss() for fix in fixes)
        kinds: dict[str, list[float]] = {}
        for fix in fixes:
            kinds.setdefault(fix.change, []).append(fix.miss())
        self.usual = {
            change: (len(own) * statistics.median(own) + POOL * self.pool) / (len(own) + POOL)
            for change, own in kinds.items()
        }
        smallest = sys.float_info.min
        self.factor = quantile(
            (fix.miss() / max(self.spread(fix.change, fix.promised), smallest) for fix in fixes), INSIDE
        )

    def spread(self, change: str, promised: Range) -> float:
        low, mid, high = (angle(one) for one in promised)
        sampling = max(0.0, min(mid - low, high - mid))
        return math.hypot(self.usual.get(change, self.pool), HALF_OF_95 * sampling)

    def range_of(self, change: str, promised: Range, bounds: bool) -> tuple[float, float]:
        """`bounds`: the recording does not show what the fix reaches, and its bounds stay."""
        low, mid, high = promised
        by = self.factor * self.spread(change, promised)
        least, most = (low, high) if bounds else (mid, mid)
        return min(least, percent(angle(mid) - by)), max(most, percent(angle(mid) + by))


def read(table: Path = TABLE) -> list[Fix]:
    with table.open(encoding="utf-8", newline="") as lines:
        return [
            Fix(
                row["change"],
                (float(row["low"]), float(row["promised"]), float(row["high"])),
                float(row["measured"]),
                row["program"],
            )
            for row in csv.DictReader(lines)
        ]


def left_out(fixes: list[Fix]) -> list[LeftOut]:
    def one(fix: Fix) -> LeftOut:
        others = [other for other in fixes if other.program != fix.program]
        # The table does not say which of them are bounds: those that at worst gain nothing are.
        return LeftOut(fix, *Misses(others).range_of(fix.change, fix.promised, bounds=fix.promised[0] == 0.0))

    return [one(fix) for fix in fixes]


def inside_percent(rows: list[LeftOut]) -> float:
    return 100 * statistics.mean(row.inside() for row in rows)


def line(name: str, rows: list[LeftOut]) -> str:
    within = 100 * statistics.mean(row.off() <= WITHIN_POINTS for row in rows)
    width = statistics.median(row.high - row.low for row in rows)
    off = statistics.median(row.off() for row in rows)
    inside = f"{sum(row.inside() for row in rows):4} of {len(rows):2} ({inside_percent(rows):3.0f} %)"
    return f"{name:10} {len(rows):5} {inside} {width:7.1f} {off:7.1f} {within:6.0f} %"


def table(rows: list[LeftOut]) -> list[str]:
    """By kind of change, and all."""
    kinds = sorted({row.fix.change for row in rows})
    return [
        f"{'change':10} {'fixes':>5} {'inside':>16} {'width':>7} {'off by':>7} {'within 15':>8}",
        *(line(kind, [row for row in rows if row.fix.change == kind]) for kind in kinds),
        line("all", rows),
    ]


def differing(analysis: dict[str, Any], misses: Misses) -> list[str]:
    """Findings of an analysis whose range is another than this file's: what is held here must be what users read."""
    lines = []
    for found in analysis["findings"]:
        gain = found.get("gain_percent")
        if gain is None or gain.get("derived") is None:
            continue
        bounds = gain["by"] in ("bounded", "prior")
        low, high = misses.range_of(gain["change"], tuple(gain["derived"]), bounds)
        # Where a device limits a gain, its range is narrower.
        if gain["high"] > high + ROUNDING or gain["low"] < low - ROUNDING:
            lines.append(f"{found['code']}: {gain['low']} to {gain['high']}, and not {low:.2f} to {high:.2f}")
    return lines


def main() -> int:
    rows = left_out(read())
    print("ranges of gains made without the program that they are held to (points of step time, medians):")
    print(*table(rows), sep="\n")
    inside = inside_percent(rows)
    if FEWEST_INSIDE <= inside <= MOST_INSIDE:
        return 0
    print(f"NOT REACHED: {inside:.1f} % inside, to reach: {FEWEST_INSIDE:.0f} to {MOST_INSIDE:.0f}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
