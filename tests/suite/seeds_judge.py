"""What was said about generated programs against what is true of them: steps, first findings, confidence, gains and
their ranges. Pure functions over the rows that seeds.py writes, so that results can be judged again."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import judge

Row = dict[str, Any]

# A fix that gains less when measured was planted too small: whether it must come first cannot be asked.
LEAST_GAIN = 10.0
# Two faults whose fixes gain about the same: either may come first.
EQUAL_POINTS = 5.0
# How far count or duration of the chosen steps may be off.
STEPS_OFF = 0.10
WITHIN_POINTS = 15.0
SURE = 0.8
# What libraries call their own ranges.
LIBRARY_NAMES = ("cub::", "thrust::", "nccl", "xlamodule", "tsl:", "xlaop", "thunk:", "cudnn", "cublas", "tensorrt")
KEPT_FINDINGS = 8
# They are about who else uses the machine, and true of any program that runs there meanwhile.
MACHINE = ("launch-thread-descheduled", "cpu-oversubscribed", "cpu-memory-pressure", "gpu-shared", "throttled")


def told(analysis: dict[str, Any]) -> Row:
    """What a row keeps of an analysis."""
    steps = analysis.get("steps") or {}
    gpu = analysis.get("gpu") or [{}]
    return {
        "steps": {key: steps.get(key) for key in ("name", "source", "why", "count", "mean_us", "p50_us", "confidence")},
        "findings": [
            {
                "code": found["code"],
                "gain_percent": found.get("gain_percent"),
                "confidence": found["confidence"],
                "title": found["title"],
            }
            for found in analysis["findings"][:KEPT_FINDINGS]
        ],
        "bottleneck": {"confidence": analysis["bottleneck"]["confidence"]},
        "busy_percent": gpu[0].get("busy_percent_of_step"),
        "replay_percent": (analysis.get("replay") or {}).get("error_percent"),
    }


def without_machine(row: Row) -> Row:
    """The row without what was said of the machine: where others use it, too, that comes first and is right."""
    return row | {"findings": [found for found in row.get("findings", []) if found["code"] not in MACHINE]}


def near(one: float | None, other: float) -> bool:
    return one is not None and other > 0 and abs(one / other - 1) <= STEPS_OFF


def library_steps(row: Row) -> bool:
    name = ((row.get("steps") or {}).get("name") or "").lower()
    return name.startswith(LIBRARY_NAMES)


def steps_right(row: Row) -> bool:
    """Count or mean duration of the requests; where the program marks none, the rounds within them count as well. A
    warm-up of the same requests may be among them."""
    chosen, true = row["steps"], row["true"]
    if library_steps(row) or not chosen.get("count"):
        return False
    marked = row["marks"] in ("step", "scope", "nvtx")
    for rounds in [1] if marked else [1, true.get("inner", 1)]:
        counts = [rounds * true["steps"], rounds * (true["steps"] + true["warm"])]
        lengths = [true["mean_us"] / rounds, true["p50_us"] / rounds]
        if any(near(chosen["count"], count) for count in counts):
            return True
        if any(near(chosen["mean_us"], length) for length in lengths):
            return True
    return False


def gains(row: Row) -> list[float | None]:
    """What each fix gained when it was measured."""
    measured = (row.get("measured") or {}).get("gains") or []
    return [measured[place] if place < len(measured) else None for place in range(len(row["faults"]))]


def accepted(row: Row) -> list[str] | None:
    """Rules that are right as the first finding. None: cannot be asked of this program; no rule: it is healthy."""
    found = gains(row)
    if not row["faults"]:
        return []
    if all(gain is None for gain in found):
        # Not fixable here; then what it is stands without a measurement.
        return row["accepted"][0] if "failed" not in (row.get("measured") or {}) else None
    best = max(gain for gain in found if gain is not None)
    if best < LEAST_GAIN:
        return None
    places = [place for place, gain in enumerate(found) if gain is not None and gain >= best - EQUAL_POINTS]
    return [code for place in places for code in row["accepted"][place]]


def verdict(row: Row) -> Row:
    """`right` is None where it cannot be asked, with the reason."""
    if "error" in row:
        return {"right": None, "why": "failed", "said": None, "confidence": None, "gain": None, "measured": None}
    wanted = accepted(row)
    first = judge.blamed(row) if wanted == [] else judge.first(row)
    gain = first.get("gain_percent") if first else None
    blamed = gain is not None
    if wanted is None:
        return {
            "right": None,
            "why": "planted too small",
            "said": first["code"] if first else judge.HEALTHY,
            "confidence": None,
            "gain": gain,
            "measured": None,
        }
    if not wanted:
        said = first["code"] if first else judge.HEALTHY
        right = first is None
    else:
        said = first["code"] if first else judge.HEALTHY
        right = said in wanted
    confidence = first["confidence"] if first and said == first["code"] else row["bottleneck"]["confidence"]
    of = [gains(row)[place] for place, codes in enumerate(row["accepted"]) if said in codes]
    known = [one for one in of if one is not None]
    return {
        "right": right,
        "why": "",
        "said": said,
        "confidence": confidence,
        "gain": gain if blamed else None,
        "measured": max(known) if known else None,
    }


def percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def gain_figures(found: list[Row]) -> Row:
    """Of verdicts with both gains: how far they are off, and whether the range kept its word."""
    off = [abs(one["gain"]["mid"] - one["measured"]) for one in found]
    inside = [one["gain"]["low"] <= one["measured"] <= one["gain"]["high"] for one in found]
    width = [one["gain"]["high"] - one["gain"]["low"] for one in found]
    return {
        "count": len(found),
        "median_error": round(statistics.median(off), 1) if off else None,
        "within_15_percent": percent(sum(one <= WITHIN_POINTS for one in off), len(off)),
        "inside_percent": percent(sum(inside), len(inside)),
        "median_width": round(statistics.median(width), 1) if width else None,
    }


def grouped(rows: list[Row], key: Callable[[Row], str]) -> dict[str, Row]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: gain_figures(found) for name, found in sorted(groups.items())}


def figures(rows: list[Row]) -> Row:
    ran = [row for row in rows if "error" not in row]
    verdicts = [verdict(row) for row in ran]
    asked = [one for one in verdicts if one["right"] is not None]
    sure = [one for one in asked if (one["confidence"] or 0.0) >= SURE]
    healthy = [(row, one) for row, one in zip(ran, verdicts, strict=True) if not row["faults"]]
    compared = [one for one in asked if one["right"] and one["gain"] and one["measured"] is not None]
    bands: dict[str, list[int]] = {}
    for one in asked:
        low = min(int((one["confidence"] or 0.0) * 5), 4) / 5
        band = bands.setdefault(f"{low:.1f} to {low + 0.2:.1f}", [0, 0])
        band[0] += one["right"]
        band[1] += 1
    return {
        "programs": len(rows),
        "failed": [row["seed"] for row in rows if "error" in row],
        "unmeasured": [row["seed"] for row in ran if "failed" in (row.get("measured") or {})],
        "not_the_same": [row["seed"] for row in ran if (row.get("measured") or {}).get("same") is False],
        "planted_too_small": [row["seed"] for row, one in zip(ran, verdicts, strict=True) if one["right"] is None],
        "steps_right_percent": percent(sum(steps_right(row) for row in ran), len(ran)),
        "steps_of_a_library": [row["seed"] for row in ran if library_steps(row)],
        "asked": len(asked),
        "first_right_percent": percent(sum(one["right"] for one in asked), len(asked)),
        "healthy": len(healthy),
        "healthy_blamed": [row["seed"] for row, one in healthy if not one["right"]],
        "sure": len(sure),
        "right_of_sure_percent": percent(sum(one["right"] for one in sure), len(sure)),
        "reliability": {name: {"right": right, "of": count} for name, (right, count) in sorted(bands.items())},
        "gains": gain_figures(compared),
        "gains_by_source": grouped(compared, lambda one: f"by {one['gain'].get('by') or 'nothing said'}"),
        "gains_by_change": grouped(compared, lambda one: f"change {one['gain'].get('change') or 'not said'}"),
        "gains_by_rule": grouped(compared, lambda one: one["said"]),
    }


def line(row: Row) -> str:
    """One program in one line, and below it what was wrong."""
    planted = " + ".join(row["faults"]) or judge.HEALTHY
    head = f"{row['seed']} {row['family']}, {planted}, {row['marks']}, {row['company']}"
    if "error" in row:
        return f"FAIL {head}: {row['error'].strip()[-600:]}"
    one = verdict(row)
    word = {True: "right", False: "WRONG", None: "     "}[one["right"]]
    gain = one["gain"]
    promised = f"{gain['mid']:.0f} ({gain['low']:.0f} to {gain['high']:.0f}, {gain.get('by')})" if gain else "none"
    measured = ", ".join("none" if one is None else f"{one:.0f}" for one in gains(row)) or "none"
    steps, true = row["steps"], row["true"]
    took = f"{true['steps']} of {true['mean_us'] / 1000:.2f} ms"
    said = f"{steps['count']} of {(steps['mean_us'] or 0) / 1000:.2f} ms {steps['name']!r} from {steps['source']}"
    lines = [
        f"{word} {head}: {one['said']}, sure {one['confidence'] or 0:.2f}, gain {promised} said, {measured} measured; "
        f"steps {'right' if steps_right(row) else 'WRONG'}: {said}, true {took}; "
        f"GPU busy {row['busy_percent'] or 0:.0f} %; {row['recorded_s']} + {row['measured_s']} s"
    ]
    if "failed" in row["measured"]:
        lines.append(f"       not measured: {row['measured']['failed'].strip()[-400:]}")
    elif row["measured"].get("same") is False:
        lines.append(f"       planted and fixed differ by {row['measured']['difference']:.3g}")
    if one["right"] is False:
        lines += [
            f"       {found['code']} {found['gain_percent']} {found['title'][:110]}" for found in row["findings"][:4]
        ]
    return "\n".join(lines)


def table(rows: list[Row]) -> list[str]:
    found = figures(rows)
    lines = [f"{name}: {value}" for name, value in found.items() if not isinstance(value, dict)]
    lines.append("confidence      right    of")
    lines += [f"{name:14} {one['right']:6} {one['of']:5}" for name, one in found["reliability"].items()]
    lines.append(f"{'gains':32} {'count':>5} {'off':>6} {'in 15':>6} {'inside':>6} {'width':>6}")
    kinds = found["gains_by_source"] | found["gains_by_change"] | found["gains_by_rule"]
    for name, one in ({"all": found["gains"]} | kinds).items():
        values = [one[key] for key in ("median_error", "within_15_percent", "inside_percent", "median_width")]
        lines.append(
            f"{name:32} {one['count']:5} " + " ".join(f"{'-' if value is None else value:>6}" for value in values)
        )
    return lines
