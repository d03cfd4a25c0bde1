"""For the tests of `inferscope.memory`: runs a program with the package and the native command, and stand-ins for
frameworks, which the package never imports itself."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from conftest import PACKAGE, PATIENCE_S, clean_environment
from inferscope import _binary

MIB = 1 << 20


def environment(**more: str) -> dict[str, str]:
    command = _binary.find()
    assert command is not None, "the inferscope command is neither installed nor built"
    known = {"PYTHONPATH": str(PACKAGE.parent), "INFERSCOPE_BIN": command}
    return clean_environment() | known | more


def run(script: str, folder: Path, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(textwrap.dedent(script), encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(file), *map(str, arguments)],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def printed(script: str, folder: Path, *arguments: object, **more: str) -> str:
    """What a program printed that ended well and said nothing on stderr."""
    done = run(script, folder, *arguments, **more)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rsplit(")", 1)[-1].split()[0] not in "ZX"


def wait_until(condition: Callable[[], bool]) -> None:
    """Looks again and again, for as long as a slow machine may take."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
