"""Runs the Python tests on every CPython 3.10 to 3.14 found here, each in an environment of its own under .venvs/
with the one built wheel in it. The end-to-end tests run whole on one version and in part on the others."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = range(10, 15)
# The whole suite runs here: what most people run inference on. If it is missing, on the newest found.
FAVOURITE = "3.12"


def candidates(minor: str) -> list[Path]:
    """Where a CPython of this version may be: pyenv's folder, then PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [folder / "bin" / "python" for folder in pyenv.glob(f"{minor}.*") if re.fullmatch(r"[\d.]+", folder.name)]
    found.sort(key=lambda python: int(python.parent.parent.name.split(".")[2]), reverse=True)
    on_path = [Path(folder) / f"python{minor}" for folder in os.get_exec_path()]
    return [python for python in [*found, *on_path] if os.access(python, os.X_OK)]


def usable(python: Path, minor: str) -> bool:
    """It starts, is CPython of that version (a pyenv shim may start another or none) and can make environments."""
    check = (
        "import sys, ensurepip, venv; "
        f"sys.exit((sys.implementation.name, '%d.%d' % sys.version_info[:2]) != ('cpython', '{minor}'))"
    )
    return subprocess.run([python, "-c", check], capture_output=True, cwd="/").returncode == 0


def find() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for number in MINORS:
        minor = f"3.{number}"
        there = candidates(minor)
        working = next((python for python in there if usable(python, minor)), None)
        if working:
            found[minor] = working
        elif there:
            print(f"CPython {minor}: {there[0]} is there but cannot make environments (is its venv package missing?)")
        else:
            print(f"CPython {minor}: none on this machine, not tested")
    return found


def environment(minor: str, python: Path, wheel: Path, requirements: list[Path]) -> Path:
    """An environment with the wheel and what the tests need; made again only when one of these has changed."""
    folder = ROOT / ".venvs" / minor
    inside = folder / "bin" / "python"
    stamp = folder / "stamp"
    parts = [str(python).encode(), wheel.read_bytes(), *(file.read_bytes() for file in requirements)]
    wanted = hashlib.sha256(b"\0".join(parts)).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted and inside.exists():
        return inside
    if not inside.exists() or subprocess.run([inside, "-c", ""], capture_output=True).returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [inside, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    files = [option for file in requirements for option in ("-r", file)]
    subprocess.run([*pip, *files], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", wheel], check=True)
    stamp.write_text(wanted)
    return inside


def run(minor: str, python: Path, whole: bool, extra: list[str]) -> bool:
    suites = [["tests/python"]]
    if whole:
        suites += [["tests/end_to_end"], ["tests/docs"]]
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
