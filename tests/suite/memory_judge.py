"""What was said of the memory of generated programs against what is planted in them. Pure functions over the rows that
memory_seeds.py writes, so that recordings can be judged again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from judge import HEALTHY, SURE

Row = dict[str, Any]

RULES = Path(__file__).resolve().parents[2] / "docs" / "rules" / "memory.md"
# It is advice to use more, and blames nobody.
ADVICE = ("memory-underused",)
# To reach, with no healthy program blamed.
RIGHT_PERCENT = 90.0
KEPT_FINDINGS = 6


def rules() -> list[str]:
    """Those that blame a program for its memory, as the page of them has them."""
    return [code for code in re.findall(r"^## (\S+)$", RULES.read_text("utf-8"), re.M) if code not in ADVICE]


def told(analysis: Row) -> Row:
    """What a row keeps of an analysis."""
    blaming = rules()
    return {
        "findings": [
            {key: found[key] for key in ("code", "confidence", "title")}
            for found in analysis["findings"]
            if found["code"] in blaming
        ][:KEPT_FINDINGS],
        "silent": {
            one["code"]: one.get("reason") for one in analysis.get("abstentions") or [] if one["code"] in blaming
        },
        "steps": {key: (analysis.get("steps") or {}).get(key) for key in ("name", "source", "count")},
    }


def verdict(row: Row) -> Row:
    """By the first finding about memory."""
    if "error" in row:
        return {"said": None, "right": None, "confidence": None}
    first = row["findings"][0] if row["findings"] else None
    said = first["code"] if first else HEALTHY
    return {"said": said, "right": said in row["accepted"], "confidence": first["confidence"] if first else None}


def totals(rows: list[Row]) -> Row:
    judged = [(row, verdict(row)) for row in rows if "error" not in row]
    right = sum(one["right"] for _, one in judged)
    bands: dict[str, dict[str, int]] = {}
    for _, one in judged:
        if one["confidence"] is not None:
            low = min(int(one["confidence"] * 5), 4) / 5
            band = bands.setdefault(f"{low:.1f} to {low + 0.2:.1f}", {"right": 0, "of": 0})
            band["right"] += one["right"]
            band["of"] += 1
    sure = [one for _, one in judged if (one["confidence"] or 0.0) >= SURE]
    return {
        "programs": len(rows),
        "failed": [row["seed"] for row in rows if "error" in row],
        "judged": len(judged),
        "right": right,
        "right_percent": round(100 * right / len(judged), 1) if judged else None,
        "wrong": [row["seed"] for row, one in judged if not one["right"]],
        "healthy": sum(row["healthy"] for row, _ in judged),
        "healthy_blamed": [row["seed"] for row, one in judged if row["healthy"] and not one["right"]],
        "sure": len(sure),
        "right_of_sure": sum(one["right"] for one in sure),
        "by_confidence": dict(sorted(bands.items())),
    }


def missed(found: Row) -> list[str]:
    """Which of the figures to reach were not, with what failed: nobody knows what would have been said of that."""
    lines = [f"the program of seed {seed} failed" for seed in found["failed"]]
    lines += [f"seed {seed} is healthy and was blamed" for seed in found["healthy_blamed"]]
    if (found["right_percent"] or 0.0) < RIGHT_PERCENT:
        lines.append(f"{found['right_percent']} % right, to reach: {RIGHT_PERCENT} or more")
    return lines


HEAD = f"{'seed':>5}  {'planted':20} {'expected':26} {'said':26} {'sure':>4}  right  family, marks, company"


def line(row: Row) -> str:
    """One program in one line, and below it what it was told where that is wrong."""
    of = f"{row['family']}, {row['marks']}, {row['company']}"
    head = f"{row['seed']:5}  {row['planted']:20} {row['expect']:26}"
    if "error" in row:
        return f"{head} FAILED  {of}: {row['error'].strip()[-600:]}"
    one = verdict(row)
    sure = "-" if one["confidence"] is None else f"{one['confidence']:.2f}"
    lines = [f"{head} {one['said']:26} {sure:>4}  {'yes' if one['right'] else 'NO':5}  {of}"]
    if not one["right"]:
        lines += [f"       {found['code']}: {found['title']}" for found in row["findings"]]
        lines += [
            f"       {code} cannot say: {row['silent'][code]}" for code in row["accepted"] if code in row["silent"]
        ]
    return "\n".join(lines)


def table(found: Row) -> list[str]:
    lines = [f"{name}: {value}" for name, value in found.items() if not isinstance(value, dict)]
    bands = found["by_confidence"]
    return [*lines, *(f"confidence {name}: {one['right']} of {one['of']} right" for name, one in bands.items())]
