"""What `with scope("name"):` costs: recorded and not, beside an empty context manager in Python and VizTracer's
log_event, in one process, one after the other, many rounds. CPU time, the best of all rounds, less an empty loop.

The last line is JSON for benches/run.py."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext, suppress

import inferscope
from inferscope import _native, _recording, mark_event, scope

# A ring grows while nobody drains it, which is paid once; after so many records it is as large as it gets.
FILL = 1_500_000


class Empty:
    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None


def loop(count: int) -> None:
    for _ in range(count):
        pass


def scopes(count: int) -> None:
    for _ in range(count):
        with scope("name"):
            pass


def scopes_with_tags(count: int) -> None:
    for number in range(count):
        with scope("name", tags={"number": number}):
            pass


def marks(count: int) -> None:
    for _ in range(count):
        mark_event("name")


@scope("decorated")
def decorated() -> None:
    return None


def plain() -> None:
    return None


def decorated_calls(count: int) -> None:
    for _ in range(count):
        decorated()


def plain_calls(count: int) -> None:
    for _ in range(count):
        plain()


def empty(count: int) -> None:
    for _ in range(count):
        with Empty():
            pass


def null(count: int) -> None:
    for _ in range(count):
        with nullcontext():
            pass


@contextmanager
def recording():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        os.environ["INFERSCOPE_SEGMENTS"] = folder
        if reason := _recording._join():
            raise SystemExit(f"InferScope does not record here: {reason}")
        try:
            yield
        finally:
            inferscope.stop()
            _native.discard()
            del os.environ["INFERSCOPE_SEGMENTS"]


@contextmanager
def viztracer():
    """Its own way to mark a piece of code, with function tracing off."""
    from viztracer import VizTracer

    tracer = VizTracer(tracer_entries=1_000_000, verbose=0, log_sparse=True)
    tracer.start()

    def events(count: int) -> None:
        for _ in range(count):
            with tracer.log_event("name"):
                pass

    try:
        yield events
    finally:
        tracer.stop()
        tracer.clear()


def nanoseconds(body: Callable[[int], None], count: int) -> float:
    # Called often, as the interpreter's own optimisations want it: 3.10 waits for a thousand calls.
    for _ in range(1100):
        body(1)
    began = time.thread_time_ns()
    body(count)
    return (time.thread_time_ns() - began) / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--count", type=int, default=10_000)
    chosen = options.parse_args()
    best: dict[str, float] = {}

    def take(name: str, body: Callable[[int], None]) -> None:
        best[name] = min(best.get(name, float("inf")), nanoseconds(body, chosen.count))

    for _ in range(chosen.rounds):
        take("loop", loop)
        take("plain call", plain_calls)
        take("disabled", scopes)
        take("disabled mark", marks)
        take("disabled decorator", decorated_calls)
        with recording():
            take("enabled, ring grows", scopes)
            marks(FILL)
            take("enabled", scopes)
            take("enabled mark", marks)
            take("enabled with tags", scopes_with_tags)
            take("enabled decorator", decorated_calls)
        take("empty class", empty)
        take("nullcontext", null)
        with suppress(ImportError), viztracer() as events:
            take("VizTracer log_event", events)
    costs = {name: value - best["loop"] for name, value in best.items() if name != "loop"}
    print(f"CPython {platform.python_version()}:")
    for name, value in costs.items():
        print(f"  {name:20} {value:8.1f} ns")
    print(json.dumps({"python": platform.python_version(), "ns": costs}))


if __name__ == "__main__":
    main()
