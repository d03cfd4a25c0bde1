"""Runs the Python tests on every CPython 3.10 to 3.14 found here, each in an environment of its own under .venvs/
with the one built wheel in it. The end-to-end tests run whole on one version and in part on the others."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from pythons import ROOT, environment, find

# The whole suite runs here: what most people run inference on. If it is missing, on the newest found.
FAVOURITE = "3.12"


def run(minor: str, python: Path, whole: bool, extra: list[str]) -> bool:
    suites = [["tests/python"]]
    if whole:
        suites += [["tests/exports"], ["tests/end_to_end"], ["tests/docs"]]
    else:
        suites += [["tests/end_to_end", "-m", "every_python"]]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    good = True
    for suite in suites:
        began = time.monotonic()
        print(f"\n== CPython {minor}: {' '.join(suite)}", flush=True)
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suite, *extra]
        code = subprocess.run(command, cwd=ROOT, env=environ).returncode
        print(f"== CPython {minor}: {suite[0]}: {'passed' if code == 0 else 'FAILED'}", end=" ")
        print(f"in {time.monotonic() - began:.0f} s", flush=True)
        good = good and code == 0
    return good


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("wheel", type=Path)
    options.add_argument("--only", action="append", metavar="3.X", help="just this version (may be repeated)")
    options.add_argument("pytest", nargs="*", help="handed on to pytest, after --")
    chosen = options.parse_args()
    found = find()
    if chosen.only:
        found = {minor: python for minor, python in found.items() if minor in chosen.only}
    if not found:
        print("no CPython 3.10 or later found: install one (pyenv install 3.12, or your distribution's package)")
        return 1
    whole_on = FAVOURITE if FAVOURITE in found else list(found)[-1]
    failed = []
    for minor, python in found.items():
        whole = minor == whole_on
        requirements = [ROOT / "tests" / "requirements.txt"]
        if whole:
            requirements.append(ROOT / "tests" / "requirements-whole.txt")
        inside = environment(minor, python, chosen.wheel.resolve(), requirements)
        if not run(minor, inside, whole, chosen.pytest):
            failed.append(minor)
    print(f"\n{len(found) - len(failed)} Pythons passed, {len(failed)} failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
