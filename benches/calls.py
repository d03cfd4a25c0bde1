"""What recording every Python call adds to a call: InferScope, cProfile, VizTracer and yappi in one process, one after
the other, many rounds. CPU time of the thread, the best of all rounds, less the same rounds with no profiler.

Run it with the Python to measure, with InferScope and the peers installed. Each profiler starts afresh every round, as
in a recording that loses nothing: VizTracer then writes every record into memory that was not touched before. The last
line is JSON for benches/run.py."""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager, redirect_stdout, suppress

import inferscope
from inferscope import _native, _recording


def work(n: int) -> int:
    """Nothing but calls: two and a bit bytecodes' worth of work for each."""
    return n if n < 2 else work(n - 1) + work(n - 2)


def calls_of(n: int) -> int:
    return 1 if n < 2 else 1 + calls_of(n - 1) + calls_of(n - 2)


@contextmanager
def ours(**environment: str):
    """The in-target part alone, into a segment that nobody drains: what the workload pays."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        settings = {"INFERSCOPE_SEGMENTS": folder, "INFERSCOPE_CALLS": "1", **environment}
        os.environ.update(settings)
        reason = _recording._join()
        states = {name: (state, message) for name, state, message in _native.status()}
        if reason or states["calls"][0] != "on":
            raise SystemExit(f"InferScope does not record calls here: {reason or states}")
        try:
            yield
        finally:
            inferscope.stop()
            _native.discard()
            for name in settings:
                del os.environ[name]


@contextmanager
def c_profile():
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()


@contextmanager
def viztracer():
    from viztracer import VizTracer

    tracer = VizTracer(tracer_entries=1_000_000, verbose=0)
    tracer.start()
    try:
        yield
    finally:
        tracer.stop()
        tracer.clear()


@contextmanager
def yappi():
    import yappi as profiler

    profiler.start()
    try:
        yield
    finally:
        profiler.stop()
        profiler.clear_stats()


@contextmanager
def nothing():
    yield


def measure(profiler: Callable[[], object], n: int, repeats: int) -> float:
    """CPU seconds of the fastest of some runs."""
    best = float("inf")
    with redirect_stdout(None), profiler():
        work(8)
        for _ in range(repeats):
            began = time.thread_time_ns()
            work(n)
            best = min(best, time.thread_time_ns() - began)
    return best / 1e9


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=12)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("-n", type=int, default=20, help="work(n) is done in each run")
    chosen = options.parse_args()
    profilers: dict[str, Callable[[], object]] = {
        "plain": nothing,
        "inferscope": ours,
        "outside the filter": lambda: ours(INFERSCOPE_CALLS_INCLUDE="no_such_module"),
        "with C calls": lambda: ours(INFERSCOPE_CALLS="c"),
        "cProfile": c_profile,
    }
    with suppress(ImportError):
        import viztracer as _viztracer  # noqa: F401

        profilers["VizTracer"] = viztracer
    with suppress(ImportError):
        import yappi as _yappi  # noqa: F401

        profilers["yappi"] = yappi
    best = dict.fromkeys(profilers, float("inf"))
    for _ in range(chosen.rounds):
        for name, profiler in profilers.items():
            best[name] = min(best[name], measure(profiler, chosen.n, chosen.repeats))
    count = calls_of(chosen.n)
    added = {name: (seconds - best["plain"]) * 1e9 / count for name, seconds in best.items() if name != "plain"}
    print(f"CPython {platform.python_version()}: {best['plain'] * 1e9 / count:.1f} ns a call with no profiler; added:")
    for name, nanoseconds in added.items():
        peer = name not in ("inferscope", "outside the filter", "with C calls")
        ratio = f"   InferScope adds {added['inferscope'] / nanoseconds:.2f} of that" if peer else ""
        print(f"  {name:20} {nanoseconds:8.1f} ns{ratio}")
    print(json.dumps({"python": platform.python_version(), "plain_ns": best["plain"] * 1e9 / count, "added_ns": added}))


if __name__ == "__main__":
    main()
