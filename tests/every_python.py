"""Runs the Python tests on every CPython 3.10 to 3.14 found here, each in an environment of its own under .venvs/
with the one built wheel in it. The end-to-end tests run whole on one version and in part on the others; several tests
run at a time, except those that need the machine for themselves. All that failed is named once more at the very end:
of a long log, often only that is kept."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pythons import ROOT, environment, find

# The whole suite runs here: what most people run inference on. If it is missing, on the newest found.
FAVOURITE = "3.12"
# Tests at a time: most wait for processes, so one more than there are processors.
AT_A_TIME = (os.cpu_count() or 2) + 1
NO_TESTS = 5
# Of each suite at the end, and of each line there.
MOST_NAMED = 20
LONGEST_LINE = 160


def run(minor: str, python: Path, wheel: Path, whole: bool, extra: list[str]) -> list[list[str]]:
    """Runs the suites of one Python. Returns those that failed: what became of each, then a line for each test."""
    together = ["-n", str(AT_A_TIME), "--dist", "worksteal"]
    suites = [["tests/python", *([] if whole else ["-m", "not one_python"]), *together]]
    if whole:
        suites += [["tests/exports", "tests/docs", *together]]
        suites += [["tests/end_to_end", "-m", "not serial", *together], ["tests/end_to_end", "-m", "serial"]]
    else:
        suites += [["tests/end_to_end", "-m", "every_python and not serial", *together]]
        suites += [["tests/end_to_end", "-m", "every_python and serial"]]
    environ = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "TEST_WHEEL": str(wheel),
    }
    failed = []
    for suite in suites:
        began = time.monotonic()
        print(f"\n== CPython {minor}: {' '.join(suite)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            notes = Path(folder, "notes")
            notes.touch()
            command = [python, ROOT / "tests" / "noted_pytest.py", notes, "-q", "-p", "no:cacheprovider"]
            code = subprocess.run([*command, *suite, *extra], cwd=ROOT, env=environ).returncode
            if code == NO_TESTS and extra:
                code = 0  # What was asked for is in another suite.
            noted = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
        end = ending(code, noted)
        print(f"== CPython {minor}: {suite[0]}: {end} in {time.monotonic() - began:.0f} s", flush=True)
        if code != 0:
            failed.append([f"CPython {minor}: {suite[0]}: {end}", *named(noted)])
    return failed


def ending(code: int, noted: list[dict[str, str]]) -> str:
    if code == 0:
        return "passed"
    count = sum("failed" in note for note in noted)
    ended = {note["ends"] for note in noted if "ends" in note}
    running = [note["begins"] for note in noted if "begins" in note and note["begins"] not in ended]
    where = f"in {' or '.join(running)}" if running else "between tests"
    if code < 0:
        cause = " (out of memory? `dmesg` tells)" if code == -signal.SIGKILL else ""
        return f"FAILED: pytest itself was killed by {signal.Signals(-code).name}{cause} {where}"
    return f"FAILED: {count} tests" if count and not running else f"FAILED: pytest ended with code {code} {where}"


def named(noted: list[dict[str, str]]) -> list[str]:
    lines = [f"  {note['failed']}: {note['why']}" for note in noted if "failed" in note]
    more = len(lines) - MOST_NAMED
    cut = [line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…" for line in lines[:MOST_NAMED]]
    return [*cut, f"  and {more} more"] if more > 0 else cut


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("wheel", type=Path, nargs="?")
    options.add_argument("--prepare", action="store_true", help="only install what the tests need, without the wheel")
    options.add_argument("--only", action="append", metavar="3.X", help="just this version (may be repeated)")
    options.add_argument("pytest", nargs="*", help="handed on to pytest, after --")
    chosen = options.parse_args()
    if not chosen.wheel and not chosen.prepare:
        options.error("which wheel?")
    found = find()
    if chosen.only:
        found = {minor: python for minor, python in found.items() if minor in chosen.only}
    if not found:
        print("no CPython 3.10 or later found: install one (pyenv install 3.12, or your distribution's package)")
        return 1
    whole_on = FAVOURITE if FAVOURITE in found else list(found)[-1]
    failed: list[list[str]] = []
    good = 0
    for minor, python in found.items():
        whole = minor == whole_on
        requirements = [ROOT / "tests" / "requirements.txt"]
        if whole:
            requirements.append(ROOT / "tests" / "requirements-whole.txt")
        wheel = chosen.wheel and chosen.wheel.resolve()
        inside = environment(minor, python, wheel, requirements)
        if chosen.prepare:
            continue
        bad = run(minor, inside, wheel, whole, chosen.pytest)
        failed += bad
        good += not bad
    if chosen.prepare:
        return 0
    # The names first, then the suites: the less of the log is kept, the more it is the outcome.
    print()
    for lines in failed:
        print("\n".join(lines))
    if len(failed) > 1:
        print("\n".join(["", *(suite for suite, *_ in failed)]))
    print(f"{good} Pythons passed, {len(found) - good} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
