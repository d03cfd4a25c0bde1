"""Runs scripts in a process that is recorded into a segment, with no recorder: what the in-target part wrote is read
back with the trace crate's `dump_segment`. Each CPython runs these tests on itself."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from segment import Segment, read

ROOT = Path(__file__).resolve().parents[2]

try:
    import inferscope
except ImportError:  # Not installed: the one that was built in place.
    sys.path.insert(0, str(ROOT / "python"))
    import inferscope

PACKAGE = Path(inferscope.__file__).parent
# A hang is what it is for: a busy machine is slow.
PATIENCE_S = 120


@pytest.fixture(scope="session")
def dump(rust_example: Callable[[str], Path]) -> Path:
    return rust_example("dump_segment")


def clean_environment() -> dict[str, str]:
    """Nothing of ours and nothing that changes how Python starts."""
    unwanted = ("INFERSCOPE_", "PYTHON", "COV_")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


class Recorded:
    """A finished process and the segments that it and its children left, by pid."""

    def __init__(self, done: subprocess.CompletedProcess[str], segments: dict[int, list[Segment]]) -> None:
        self.done = done
        self.out = done.stdout
        self.err = done.stderr
        self.code = done.returncode
        self.segments = segments

    @property
    def only(self) -> Segment:
        """The one segment, of a process that ended well and said nothing on stderr."""
        assert (self.code, self.err) == (0, "")
        found = [segment for segments in self.segments.values() for segment in segments]
        assert len(found) == 1
        return found[0]


Record = Callable[..., Recorded]


@pytest.fixture
def record(dump: Path, tmp_path: Path) -> Record:
    def run(
        script: str,
        *arguments: str,
        calls: str = "0",
        python: tuple[str, ...] = (),
        inject: bool = True,
        later: bool = False,
        timeout: float = PATIENCE_S,
        **environment: str,
    ) -> Recorded:
        file = tmp_path / "script.py"
        file.write_text(textwrap.dedent(script), encoding="utf-8", errors="surrogatepass")
        folder = tmp_path / "segments"
        folder.mkdir(exist_ok=True)
        # TEST_SEGMENTS: for scripts that start recording later, by themselves.
        environ = clean_environment() | {"TEST_SEGMENTS": str(folder), "INFERSCOPE_CALLS": calls}
        environ["INFERSCOPE_SEGMENTS"] = "" if later else str(folder)
        environ["PYTHONPATH"] = str(PACKAGE / "_inject" if inject and not later else PACKAGE.parent)
        environ |= environment
        done = subprocess.run(
            [sys.executable, *python, str(file), *arguments],
            env=environ,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            cwd=tmp_path,
        )
        segments: dict[int, list[Segment]] = {}
        for path in sorted(folder.glob("*.segment")):
            segment = read(dump, path)
            segments.setdefault(segment.pid, []).append(segment)
        return Recorded(done, segments)

    return run
