"""Minutes of decode: nothing is lost, memory stays flat, and the report is there soon after the end. How many kernels a
step has is known from two short recordings of the same program, and, in a process of its own, from the graph that holds
them."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from case import Case, equal

SHORT = (100, 300)
MOST_MEMORY = 64 << 20
EVERYTHING = ("--overhead-budget", "none")


def told(case: Case, name: str) -> dict[str, Any]:
    words = [str(case.command), "analyze", str(case.folder / name), "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, env=case.environ, timeout=300)
    assert done.returncode == 0, done.stderr[-800:]
    analysis: dict[str, Any] = json.loads(done.stdout)
    return analysis


def kernels(analysis: dict[str, Any]) -> int:
    return sum(kernel["count"] for kernel in analysis["gpu_work"]["kernels"])


def lost(analysis: dict[str, Any]) -> list[dict[str, Any]]:
    """Records, not samples from outside that a busy machine had no time for."""
    outside = ("stacks", "threads", "memory", "devices")
    return [loss for loss in analysis["health"]["losses"] if loss["collector"] not in outside]


def long(case: Case) -> None:
    if case.dry:
        return
    counts = []
    for steps in SHORT:
        done = case.record(f"short-{steps}", case.python("long.py", 60, steps), *EVERYTHING)
        equal(done.known["steps"], steps, "steps")
        counts.append(kernels(told(case, f"short-{steps}")))
    each, odd = divmod(counts[1] - counts[0], SHORT[1] - SHORT[0])
    before = counts[0] - SHORT[0] * each
    graph = case.record("graph", case.python("long.py", 60, 1, "captured"), *EVERYTHING).known["graph_kernels"]
    done = case.record("long", case.python("long.py", 60 * case.minutes), *EVERYTHING)
    ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    stopped = (case.folder / "long" / "manifest.json").stat().st_mtime_ns - time.time_ns() + time.monotonic_ns()
    known = done.known
    figure = case.results.figure
    figure("long_minutes", case.minutes)
    figure("long_stop_s", round((stopped - known["end_ns"]) / 1e9, 2))
    figure("long_report_s", round((ended - known["end_ns"]) / 1e9, 2))
    figure("long_memory_grown_bytes", known["late_bytes"] - known["early_bytes"])
    bytes_on_disk = sum(file.stat().st_size for file in (case.folder / "long").glob("*.parquet"))
    analysis = told(case, "long")
    found = kernels(analysis)
    figure("long_kernels", found)
    figure("long_steps", known["steps"])
    clock = analysis["gpu_work"]["clock"]
    figure("long_bytes_per_gpu_event", round(bytes_on_disk / (clock["linked"] + clock["waits"]), 1), "all tables")

    def nothing_lost() -> None:
        equal(odd, 0, "kernels that are not the same number in every step")
        spare = each - graph
        assert 0 < spare <= 3, f"a step has {spare} kernels more than its graph, which does not choose the token"
        equal(found, before + each * known["steps"], "kernels")
        equal(lost(analysis), [], "losses")

    def flat() -> None:
        grown = known["late_bytes"] - known["early_bytes"]
        assert grown <= MOST_MEMORY, f"the memory of the program has grown by {grown} bytes"

    case.check("long: memory stays flat", flat)
    case.check(f"long: every kernel of {case.minutes} minutes of decode", nothing_lost)
