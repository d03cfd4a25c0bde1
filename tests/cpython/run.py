"""Runs CPython's own tests plain and under `inferscope run`, on every CPython found here that ships its tests, and
compares them test by test: any difference is a fault of ours. `--calls` records every call besides; what cannot be the
same then is listed in calls.txt with its reason, and anything else fails."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import expected
from differences import Difference, because_of_recording, between
from modules import MODULES, QUICK
from outcomes import Way
from pythons import find

# What a whole run has on every Python; fewer would mean that tests went missing.
LEAST_TESTS = 8000


class Comparison:
    """All modules on one Python."""

    def __init__(self, minor: str, python: Path, inferscope: Path, calls: bool) -> None:
        self.minor = minor
        self.listed = [entry for entry in expected.read() if calls and minor in entry.versions]
        self.plain = Way(python)
        self.recorded = Way(python, inferscope, ("--calls",) if calls else ())
        self.tests = 0
        self.missing: list[str] = []
        self.faults: list[str] = []
        self.differences: list[Difference] = []
        self.expected: list[Difference] = []
        self._lock = Lock()

    def tell(self, text: str) -> None:
        print(f"CPython {self.minor}: {text}", flush=True)

    def compare(self, module: str) -> None:
        began = time.monotonic()
        plain = self.plain.run(module)
        half = time.monotonic()
        if plain.missing:
            with self._lock:
                self.missing.append(module)
            return
        recorded = self.recorded.run(module)
        end = time.monotonic()
        found = between(plain, recorded)
        self.tell(
            f"{module}: {len(plain.outcomes)} tests, {len(found)} different "
            f"(plain {half - began:.0f} s, recorded {end - half:.0f} s)"
        )
        known = [one for one in found if self.is_listed(one.test)]
        unknown = [one for one in found if not self.is_listed(one.test)]
        if unknown:
            unknown = because_of_recording(module, unknown, self.plain, self.recorded, self.tell)
        with self._lock:
            self.tests += len(plain.outcomes)
            self.faults += [f"{module}: {run.fault}" for run in (plain, recorded) if run.fault]
            self.differences += unknown
            self.expected += known

    def is_listed(self, test: str) -> bool:
        return any(entry.covers(test) for entry in self.listed)

    def verdict(self, whole: bool) -> list[str]:
        """What is wrong, a line each."""
        wrong = list(self.faults)
        for one in self.differences:
            wrong.append(f"{one.test}: plain {one.plain}, recorded {one.recorded}: {one.why[:300]}")
        if whole:
            wrong += [
                f"{entry.test}: listed in {expected.FILE.name}, but not different: take it out"
                for entry in self.listed
                if not entry.sometimes and not any(entry.covers(one.test) for one in self.expected)
            ]
            if self.tests < LEAST_TESTS:
                wrong.append(f"{self.tests} tests are fewer than {LEAST_TESTS}")
        return [f"CPython {self.minor}: {line}" for line in wrong]


def with_tests(only: list[str] | None) -> dict[str, Path]:
    """CPythons by version. Some distributions leave the tests out."""
    chosen = {}
    for minor, python in find().items():
        shipped = python.resolve().parent.parent / "lib" / f"python{minor}" / "test" / "test_threading.py"
        if only and minor not in only:
            continue
        if shipped.exists():
            chosen[minor] = python.resolve()
        else:
            print(f"CPython {minor}: comes without its tests, not tested")
    return chosen


def main() -> int:
    signals_as_usual()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", type=Path, required=True, help="the inferscope to record with")
    options.add_argument("--calls", action="store_true", help="record every call")
    options.add_argument(
        "--quick", action="store_true", help="a part of the modules, on the newest and the oldest Python"
    )
    options.add_argument("--only", action="append", metavar="3.X", help="just this version (may be repeated)")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("modules", nargs="*", help="just these")
    chosen = options.parse_args()
    found = with_tests(chosen.only)
    if not found:
        print("no CPython 3.10 or later that ships its tests (pyenv's do: pyenv install 3.12)")
        return 1
    if chosen.quick:
        found = {minor: found[minor] for minor in {min(found, key=number), max(found, key=number)}}
    modules = tuple(chosen.modules) or (QUICK if chosen.quick else MODULES)
    wrong: list[str] = []
    summary: list[str] = []
    for minor, python in found.items():
        began = time.monotonic()
        comparison = Comparison(minor, python, chosen.command.resolve(), chosen.calls)
        with ThreadPoolExecutor(chosen.jobs) as pool:
            list(pool.map(comparison.compare, modules))
        bad = comparison.verdict(whole=modules == MODULES)
        wrong += bad
        missing = f", without {', '.join(sorted(comparison.missing))}" if comparison.missing else ""
        summary.append(
            f"CPython {minor}: {comparison.tests} tests, {len(comparison.differences)} different, "
            f"{len(comparison.expected)} different as listed, "
            f"{time.monotonic() - began:.0f} s{missing}"
        )
        print(summary[-1], flush=True)
    print("\n".join(["", *wrong, *summary, "FAILED" if wrong else "passed: recorded and plain are the same"]))
    return 1 if wrong else 0


def signals_as_usual() -> None:
    """Started in the background or by nohup, this process ignores some signals, and so would the tests, which then wait
    for them in vain. It goes on ignoring them by handlers that do nothing: those are not inherited."""
    for one in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, lambda *_: None)


def number(minor: str) -> int:
    return int(minor.partition(".")[2])


if __name__ == "__main__":
    sys.exit(main())
