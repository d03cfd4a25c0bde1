"""The CPythons on this machine, and environments for them under .venvs/ with the built wheel in each."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = range(10, 15)


def candidates(minor: str) -> list[Path]:
    """Where a CPython of this version may be: pyenv's folder, then PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [
        folder / "bin" / f"python{minor}" for folder in pyenv.glob(f"{minor}.*") if re.fullmatch(r"[\d.]+", folder.name)
    ]
    found.sort(key=lambda python: int(python.parent.parent.name.split(".")[2]), reverse=True)
    on_path = [Path(folder) / f"python{minor}" for folder in os.get_exec_path()]
    return [python for python in [*found, *on_path] if os.access(python, os.X_OK)]


def usable(python: Path, minor: str) -> bool:
    """It starts and is CPython of that version: a pyenv shim may start another one, or none."""
    check = (
        "import sys, venv; "
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
            print(f"CPython {minor}: {there[0]} is there but does not work, not tested")
        else:
            print(f"CPython {minor}: none on this machine, not tested")
    return found


def environment(name: str, python: Path, wheel: Path | None, requirements: list[Path]) -> Path:
    """An environment with what the tests need and the wheel, if there is one yet; each is installed again only when it
    has changed."""
    folder = ROOT / ".venvs" / name
    inside = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", inside, "--quiet", "--disable-pip-version-check", "install"]
    stamp = folder / "requirements.stamp"
    wanted = digest(str(python).encode(), *(file.read_bytes() for file in requirements))
    if not inside.exists() or not stamp.exists() or stamp.read_text() != wanted:
        if not inside.exists() or subprocess.run([inside, "-c", ""], capture_output=True).returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            # Some distributions leave ensurepip out; the pip that runs this script serves all environments.
            subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
        files = [option for file in requirements for option in ("-r", file)]
        subprocess.run([*pip, *files], check=True)
        stamp.write_text(wanted)
    if wheel:
        stamp, wanted = folder / "wheel.stamp", digest(wheel.read_bytes())
        if not stamp.exists() or stamp.read_text() != wanted:
            subprocess.run([*pip, "--no-deps", "--force-reinstall", wheel], check=True)
            stamp.write_text(wanted)
    return inside


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
