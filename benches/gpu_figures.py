"""What the runs of the GPU benchmark say: step times and slowdowns with their spread, and the promised figures with
verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

Runs = dict[str, dict[str, list[dict[str, Any]]]]

GPU_BOUND = ("bert", "resnet50")
LAUNCH_BOUND = ("gpt2", "mlp")
MB = 1 << 20


def plain(variants: dict[str, list[dict[str, Any]]], number: int, key: str) -> float | None:
    """The mean of the round's plain runs."""
    found = [
        runs[number][key]
        for name, runs in variants.items()
        if name.startswith("plain") and number < len(runs) and key in runs[number]
    ]
    return statistics.mean(found) if found else None


def ratios(variants: dict[str, list[dict[str, Any]]], name: str, key: str = "median_ns") -> list[float]:
    """Slowdown in each round, against the plain runs of the same round."""
    found = []
    for number, said in enumerate(variants.get(name, [])):
        base = plain(variants, number, key)
        if base and key in said:
            found.append(said[key] / base)
    return found


def middle(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def lines(runs: Runs) -> Iterator[str]:
    for model, variants in runs.items():
        yield f"{model}:"
        for name, all_said in variants.items():
            good = [said for said in all_said if "median_ns" in said]
            if not good:
                yield f"  {name:12} no run: {all_said[-1].get('error', '') if all_said else ''}"
                continue
            found, means = ratios(variants, name), ratios(variants, name, "mean_ns")
            step = statistics.median(said["median_ns"] for said in good) / 1000
            spread = f" ({min(found):.3f} to {max(found):.3f})" if found else ""
            by_mean = f", by mean {middle(means):.3f}" if means else ""
            factor = f"{middle(found):.3f} x plain" if found else ""
            yield f"  {name:12} {step:10.1f} us a step, {factor}{spread}{by_mean}{more(good)}"


def more(good: list[dict[str, Any]]) -> str:
    last = good[-1]
    parts = []
    grown = statistics.median(said["memory"]["VmRSS"] for said in good) / MB
    parts.append(f"{grown:.0f} MB resident")
    if "counts" in last:
        events = sum(last["counts"].values())
        each, work = last["trace_bytes"] / max(events, 1), max(events - last["counts"]["api_calls"], 1)
        parts.append(
            f"{events} GPU events, {each:.1f} bytes each ({last['gpu_table_bytes'] / work:.1f} of the GPU's table)"
        )
        parts.append(f"lost {last['lost']}")
        parts.append(f"report {statistics.median(said['after_end_s'] for said in good):.2f} s after the end")
    if "stop_s" in last:
        each = last["file_bytes"] / max(last["gpu_events"], 1)
        parts.append(f"stop {last['stop_s']:.2f} s, export {last['export_s']:.2f} s, {each:.0f} bytes an event")
    return ", " + ", ".join(parts)


def promised(runs: Runs) -> Iterator[tuple[str, float, str, bool]]:
    """(what, measured, target, reached)."""
    for model, variants in runs.items():
        ours, floor = middle(ratios(variants, "default")), middle(ratios(variants, "floor"))
        if ours is None:
            continue
        if floor is not None:
            yield f"{model}: above the floor", 100 * (ours - floor), "at most 3 % of step time", ours - floor <= 0.03
        slower = 100 * (ours - 1)
        if model in GPU_BOUND:
            yield f"{model}: slowdown", slower, "at most 3 %", ours <= 1.03
        elif model in LAUNCH_BOUND:
            yield f"{model}: slowdown", slower, "at most 10 %", ours <= 1.10
            theirs = middle(ratios(variants, "torch-all"))
            if theirs is not None and theirs > 1:
                share = (ours - 1) / (theirs - 1)
                yield f"{model}: of what torch.profiler adds", 100 * share, "at most 25 %", share <= 0.25
        else:
            yield f"{model}: slowdown", slower, "at most 1 %", ours <= 1.01
        budget = middle(ratios(variants, "budget", "mean_ns"))
        if budget is not None:
            yield f"{model}: with a budget of 2 %", 100 * (budget - 1), "at most 3 %", budget <= 1.03
        good = [said for said in variants["default"] if "counts" in said]
        base = [said["memory"]["VmRSS"] for name in variants if name.startswith("plain") for said in variants[name]
                if "memory" in said]  # fmt: skip
        if good and base:
            added = statistics.median(said["memory"]["VmRSS"] for said in good) - statistics.median(base)
            yield f"{model}: memory added, MB", added / MB, "at most 64", added <= 64 * MB
            events = max(sum(good[-1]["counts"].values()), 1)
            each = good[-1]["trace_bytes"] / events
            yield f"{model}: bytes a GPU event", each, "at most 20", each <= 20
            lost = sum(said["lost"] or 0 for said in good)
            yield f"{model}: records lost", float(lost), "0", lost == 0
            after = max(said["after_end_s"] for said in good)
            yield f"{model}: end to report, s", after, "at most 5", after <= 5


def report(runs: Runs, figures: dict[str, Any], judged: bool) -> Iterator[str]:
    yield from lines(runs)
    for what, measured, target, reached in promised(runs) if judged else ():
        figures[what] = {"value": round(measured, 3), "target": target, "reached": reached}
        yield f"{'reached' if reached else 'MISSED':8} {what}: {measured:.2f} ({target})"
