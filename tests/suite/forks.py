"""Measures generated programs without InferScope: imports PyTorch once, then forks a process for each line on its input
(`{"file": ..., "seconds": ..., "fixes": 1}`), which checks that planted and fixed compute the same, runs them in short
alternating blocks, and prints what it found as one line of JSON."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import statistics
import sys
import time
import traceback
from types import SimpleNamespace
from typing import Any

import torch  # noqa: F401, so that every fork has it

# A program that takes longer has hung.
MOST_SECONDS = 45
# A block is long enough for its mean to be of many steps, and short enough that all variants see the same clocks.
BLOCK_SECONDS = 0.1
MOST_BLOCK_STEPS = 20
ROUNDS = 6


def loaded(file: str) -> Any:
    spec = importlib.util.spec_from_file_location("generated_program", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Workers of a loader look their classes up by the module's name.
    sys.modules["generated_program"] = module
    spec.loader.exec_module(module)
    return module


def block(program: Any, service: Any, count: int) -> float:
    """Seconds a step."""
    service.begin()
    try:
        service.request(0)  # The first one after a change of kind is of neither.
        program.wait()
        began = time.perf_counter()
        for number in range(count):
            service.request(number)
        program.wait()
        return (time.perf_counter() - began) / count
    finally:
        service.end()


def scores(program: Any, service: Any) -> Any:
    service.begin()
    try:
        for number in range(3):
            service.request(number)
        program.wait()
        return service.scores
    finally:
        service.end()


def compared(program: Any, fixes: int, seconds: float) -> dict[str, Any]:
    """Planted against each fix alone: what each gains, in percent of the planted step."""
    variants = [(False, False), (True, False), (False, True)][: fixes + 1]
    services = [program.Service(SimpleNamespace(fixed=one, also_fixed=two)) for one, two in variants]
    results = [scores(program, service) for service in services]
    off = max((program.difference(results[0], other) for other in results[1:]), default=0.0)
    counts = []
    for service in services:
        each = block(program, service, 2)
        counts.append(max(1, min(MOST_BLOCK_STEPS, int(BLOCK_SECONDS / each))))
    rounds: list[list[float]] = []
    began = time.perf_counter()
    while len(rounds) < ROUNDS and (len(rounds) < 3 or time.perf_counter() - began < seconds):
        # Each variant comes first in turn.
        first = len(rounds) % len(services)
        order = [*range(first, len(services)), *range(first)]
        means = {place: block(program, services[place], counts[place]) for place in order}
        rounds.append([means[place] for place in range(len(services))])
    gains = [[100 * (1 - row[place] / row[0]) for row in rounds] for place in range(1, len(services))]
    return {
        "planted_us": round(1e6 * statistics.median(row[0] for row in rounds), 1),
        "gains": [round(statistics.median(one), 2) for one in gains],
        "spread": [[round(min(one), 2), round(max(one), 2)] for one in gains],
        "rounds": len(rounds),
        "same": bool(off <= program.TOLERANCE),
        "difference": off,
    }


def child(asked: dict[str, Any], out: int) -> None:
    """Runs in the fork, whose standard output the program may use as it likes."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = compared(loaded(asked["file"]), asked["fixes"], asked["seconds"])
    except BaseException:
        found = {"failed": traceback.format_exc(limit=-3)}
    os.write(out, (json.dumps(found) + "\n").encode())


def main() -> None:
    out = os.dup(1)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            # Children of its own, as a loader's workers, end with it.
            os.setpgid(0, 0)
            signal.alarm(MOST_SECONDS)
            child(json.loads(line), out)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if status:
            text = f"ended with {os.waitstatus_to_exitcode(status)}"
            os.write(out, (json.dumps({"failed": text}) + "\n").encode())


if __name__ == "__main__":
    main()
