"""Runs the installed `inferscope` command on small scripts and looks at what it left: exit, output, trace."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet

INFERSCOPE = Path(sys.executable).with_name("inferscope")
REPOSITORY = Path(__file__).resolve().parents[2]
SCOPE, STEP, MARK, CALL, C_CALL, RECORDING_WINDOW, FIX = 1, 2, 3, 4, 5, 11, 14
# Generous: these machines have few cores and much else to do, and a hang is what it is for.
PATIENCE_S = 120
# A million rows are about a gigabyte of Python objects. A recording that can grow with the machine's speed would take
# all memory and the whole run with it; here it fails alone.
MOST_ROWS = 4_000_000


def until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
    """Waits for a condition, by looking, and gives its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.01)
    return value


@contextlib.contextmanager
def memory_group(limit: int):
    """A control group with that much memory, of whichever version the machine has."""
    name = f"inferscope-test-{os.getpid()}"
    old, new = Path("/sys/fs/cgroup/memory") / name, Path("/sys/fs/cgroup") / name
    folder = old if old.parent.is_dir() else new
    folder.mkdir()
    try:
        (folder / ("memory.limit_in_bytes" if folder == old else "memory.max")).write_text(str(limit))
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


@dataclass
class Trace:
    """A trace's folder, read the way docs/trace-format.md tells anybody to read it."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))

    @property
    def notes(self) -> list[str]:
        """What the recorder says of what is missing, in words."""
        return [note["text"] for note in self.manifest["notes"]]

    @property
    def report(self) -> str:
        return (self.folder / "report.md").read_text(encoding="utf-8")

    def files(self, name: str) -> list[Path]:
        files = []
        for file in self.folder.glob(f"{name}.*.parquet"):
            first, last = re.fullmatch(rf"{name}\.(\d+)-(\d+)\.parquet", file.name).groups()
            files.append((int(first), -int(last), file))
        found, covered = [], 0
        for _, last, file in sorted(files):
            if -last > covered:  # Else a wider, compacted file has replaced it.
                covered = -last
                found.append(file)
        return found

    def count(self, name: str) -> int:
        """Rows of a table, however many, without reading them."""
        return sum(pyarrow.parquet.read_metadata(file).num_rows for file in self.files(name))

    def table(self, name: str) -> list[dict[str, Any]]:
        rows = []
        for file in self.files(name):
            there = pyarrow.parquet.read_metadata(file).num_rows
            assert len(rows) + there <= MOST_ROWS, f"{file}: too many rows for a test to read: bound its work"
            rows += pyarrow.parquet.read_table(file).to_pylist()
        return rows

    def names(self) -> dict[int, str]:
        return {row["id"]: row["text"] for row in self.table("names")}

    def slices(self, kind: int | None = None) -> list[dict[str, Any]]:
        """Slices with their names' text; a complete one replaces the open one with the same id."""
        names = self.names()
        rows = [row | {"text": names[row["name"]]} for row in self.table("slices") if kind in (None, row["kind"])]
        closed = {
            (row["process"], row["kind"], row["id"])
            for row in rows
            if row["dur_ns"] is not None and row["id"] is not None
        }
        return [
            row for row in rows if row["dur_ns"] is not None or (row["process"], row["kind"], row["id"]) not in closed
        ]

    def texts(self, kind: int) -> list[str]:
        return [row["text"] for row in sorted(self.slices(kind), key=lambda row: row["start_ns"])]

    def python_lines(self) -> dict[int, tuple[str, int]]:
        """The innermost (function, line) of Python of each stack: what is native counts for the line that called it."""
        names = {row["id"]: row for row in self.table("names")}
        leaves: dict[int, tuple[str, int]] = {}
        for row in sorted(self.table("stacks"), key=lambda row: row["id"]):
            name = names[row["name"]]
            python = (name["file"] or "").endswith(".py") or (name["file"] or "").startswith("<")
            own = (name["text"], row["line"])
            leaves[row["id"]] = own if python else leaves.get(row["parent"] or 0, own)
        return leaves

    def hottest(self) -> dict[tuple[str, int], int]:
        """(function, line) of Python at the top of each sampled stack, with how often it was there."""
        leaves = self.python_lines()
        counts: dict[tuple[str, int], int] = {}
        for sample in self.table("samples"):
            leaf = leaves[sample["stack"]]
            counts[leaf] = counts.get(leaf, 0) + 1
        return counts

    def is_recorded(self) -> bool:
        """Whether a supervisor or a recorder lives, be it one that was just started again."""
        with (self.folder / "recorder.lock").open("rb") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        return True

    def lost(self) -> int:
        """Records that the workload wrote and the trace does not have. Stack samples that a busy machine had no time
        for are losses too, and reported, but nobody wrote them."""
        return sum(
            row["count"] for row in self.table("losses") if row["collector"] not in ("stacks", "threads", "memory")
        )


@dataclass
class Recorded:
    code: int
    out: bytes
    err: bytes
    trace: Trace

    @property
    def told(self) -> str:
        return self.err.decode(errors="replace")


def environment(**extra: str) -> dict[str, str]:
    """Ours, without anything of InferScope's own: a test says what it wants. PATH starts with the tested Python."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
    kept["PATH"] = f"{INFERSCOPE.parent}{os.pathsep}{kept['PATH']}"
    return kept | extra


def inferscope(*arguments: object, timeout: float = PATIENCE_S, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs the command to its end. What takes too long is ended with all that it has started."""
    options.setdefault("env", environment())
    words = options.pop("input", None)
    options.setdefault("stdin", None if words is None else subprocess.PIPE)
    command = [os.fspath(INFERSCOPE), *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True, **options) as process:
        try:
            out, err = process.communicate(words, timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def analyze(trace: Path | Trace, **options: Any) -> str:
    folder = trace.folder if isinstance(trace, Trace) else trace
    done = inferscope("analyze", folder, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def signalled(code: int, number: signal.Signals) -> bool:
    """How `subprocess` shows a death by signal, or how a shell would."""
    return code in (-number, 128 + number)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class Recording:
    """A recording in the background, for tests that do something to it in the middle."""

    def __init__(self, folder: Path, command: Sequence[object], *options: object, **popen: Any) -> None:
        self.trace = Trace(folder)
        popen.setdefault("env", environment())
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        arguments = ["run", "--output", folder, *options, "--", *command]
        self.process = subprocess.Popen([os.fspath(INFERSCOPE), *map(str, arguments)], **popen)

    def line(self) -> str:
        """The next line that the workload prints."""
        return self.process.stdout.readline().decode().strip()

    def finish(self) -> Recorded:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Recorded(self.process.returncode, out, err, self.trace)

    @property
    def recorder(self) -> int:
        """The process that writes the trace; the command itself is its supervisor."""
        return self.trace.manifest["recorder_pid"]

    def kill_all_of_ours(self) -> None:
        """The supervisor first: it would start the recorder again. The recorder may have ended by itself meanwhile."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        pid = self.recorder
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text() == "inferscope-rec\n":
                os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), "the recorder is gone")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)
