"""Without special rights: an ordinary user records their own programs, and a program that the kernel protects is
recorded as far as it goes, with a sentence about the rest."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from recording import INFERSCOPE, PATIENCE_S, SCOPE, Recorded, Trace, environment


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder where any user may write; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


@pytest.fixture
def their_python(unprivileged: list[str]) -> str:
    """A Python that an ordinary user may start: ours may lie in root's home."""
    for python in (sys.executable, "/usr/bin/python3"):
        tried = subprocess.run([*unprivileged, python, "-c", "import sys; assert sys.version_info >= (3, 10)"], cwd="/")
        if tried.returncode == 0:
            return python
    pytest.fail(
        "no Python 3.10 or later that an ordinary user may start (/usr/bin/python3 would do): nothing was tested"
    )


@pytest.fixture
def record_as_user(unprivileged, their_python, place):
    def run(text: str) -> Recorded:
        script = place / "script.py"
        script.write_text(text)
        command = [*unprivileged, INFERSCOPE, "run", "--output", place / "trace", "--", their_python, script]
        environ = environment(HOME=str(place))
        done = subprocess.run(command, capture_output=True, cwd=place, env=environ, timeout=PATIENCE_S)
        return Recorded(done.returncode, done.stdout, done.stderr, Trace(place / "trace"))

    return run


WORK = """
import glob, sys, time
from inferscope import scope
with scope("recorded"): pass
# Until it has been looked at from outside.
end = time.monotonic() + 60
while time.monotonic() < end and not glob.glob("trace/{table}.*.parquet"): pass
sys.exit(6)
"""
# PR_SET_DUMPABLE 0, as servers do that hold secrets.
PROTECTED = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" + WORK.format(table="counters")


def test_an_ordinary_user_records_everything_of_their_own_program(record_as_user):
    ours = record_as_user(WORK.format(table="samples"))
    assert ours.code == 6, ours.told
    assert ours.trace.texts(SCOPE) == ["recorded"]
    assert ours.trace.table("samples")
    assert not [note for note in ours.trace.notes if note.startswith(("no stacks", "no scopes"))]


def test_a_protected_program_runs_unharmed_and_the_trace_says_what_is_missing(record_as_user):
    ours = record_as_user(PROTECTED)
    assert ours.code == 6, ours.told
    assert ours.trace.texts(SCOPE) == ["recorded"], "what comes from inside needs no permission"
    (note,) = [note for note in ours.trace.notes if note.startswith("no stacks")]
    assert "not dumpable" in note
    assert "SYS_PTRACE" in note
    assert note in ours.told


def test_nobody_else_may_look_into_the_segments(script, record):
    """What a program does is its user's business."""
    ours = record(script("import os\nprint(oct(os.stat(os.environ['INFERSCOPE_SEGMENTS']).st_mode & 0o777))"))
    assert ours.out == b"0o700\n"
