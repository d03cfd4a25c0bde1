"""What an NVTX range costs under InferScope, beside NVTX without a tool, where it costs nearly nothing: the `nvtx`
package in a process of its own for each, in turns, many rounds. CPU time, the best of all rounds, less an empty loop.

The last line is JSON for benches/run.py."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import inferscope

WARM_UP = 2_000


def bodies() -> dict[str, Callable[[int], None]]:
    import nvtx

    domain = nvtx.get_domain("bench")
    attributes = domain.get_event_attributes(message="prepared", category="category")
    push, pop = domain.push_range, domain.pop_range

    def empty(count: int) -> None:
        for _ in range(count):
            pass

    def prepared(count: int) -> None:
        for _ in range(count):
            push(attributes)
            pop()

    def by_name(count: int) -> None:
        for _ in range(count):
            nvtx.push_range("name")
            nvtx.pop_range()

    def start_and_end(count: int) -> None:
        for _ in range(count):
            nvtx.end_range(nvtx.start_range("name"))

    def mark(count: int) -> None:
        for _ in range(count):
            nvtx.mark("name")

    # The package itself does less without a tool: by name it then makes no attributes at all. What was prepared before
    # compares best.
    return {
        "empty": empty,
        "push and pop, prepared": prepared,
        "push and pop, by name": by_name,
        "start and end": start_and_end,
        "mark": mark,
    }


def worker(rounds: int, count: int) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, body in bodies().items():
            body(WARM_UP)
            began = time.thread_time_ns()
            body(count)
            best[name] = min(best.get(name, float("inf")), (time.thread_time_ns() - began) / count)
    return {name: ns - best["empty"] for name, ns in best.items() if name != "empty"}


def process(arguments: list[str], **variables: str) -> dict[str, float]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("INFERSCOPE", "NVTX"))}
    command = [sys.executable, __file__, "--worker", *arguments]
    done = subprocess.run(command, env=kept | variables, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        print(json.dumps(worker(3, chosen.count)))
        return
    (library,) = Path(inferscope.__file__).parent.glob("_cuda*.so")
    best: dict[str, dict[str, float]] = {"inferscope": {}, "no tool": {}}
    for _ in range(chosen.rounds):
        # A folder for segments is all that the library needs to record. It is read by nobody here.
        with tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
            ours = process(
                ["--count", str(chosen.count)], NVTX_INJECTION64_PATH=str(library), INFERSCOPE_SEGMENTS=segments
            )
        for who, ns in (("inferscope", ours), ("no tool", process(["--count", str(chosen.count)]))):
            best[who] = {name: min(value, best[who].get(name, value)) for name, value in ns.items()}
    added = {name: ns - best["no tool"][name] for name, ns in best["inferscope"].items()}
    for name, ns in added.items():
        print(f"{name}: {best['no tool'][name]:.0f} ns without a tool, {ns:+.0f} ns under inferscope")
    print(json.dumps({"ns": best, "added_ns": added}))


if __name__ == "__main__":
    main()
