"""One recording with its workload, and the kills that it gets: of whom, how often, in which order."""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

INFERSCOPE = Path(sys.executable).with_name("inferscope")
WORKLOAD = Path(__file__).with_name("workload.py")
# A hang is what it is for: a machine with much else to do takes seconds for what takes milliseconds.
PATIENCE_S = 120.0

# Who is killed. The workload ends by itself where it is not.
RECORDER = "recorder, again and again"
COMPLETING = "recorder, while it completes"
WORKLOAD_KILLED = "workload"
SUPERVISOR = "supervisor"
ORPHAN = "supervisor, then recorder"
ALL = "all at once"
KINDS = (RECORDER, COMPLETING, WORKLOAD_KILLED, SUPERVISOR, ORPHAN, ALL)


class Round:
    def __init__(self, trace: Path, pace: str) -> None:
        self.trace = trace
        self._count = trace.with_suffix(".count")
        self._count.write_bytes(bytes(16))
        with self._count.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 16)
        command = [INFERSCOPE, "run", "--quiet", "--output", trace, "--", sys.executable, WORKLOAD, self._count, pace]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
        self.supervisor = subprocess.Popen(command, start_new_session=True, env=kept, stdout=subprocess.DEVNULL)
        self.kills = 0

    def __enter__(self) -> Round:
        self._until(lambda: self.workload or self.supervisor.poll() is not None, "the workload runs")
        assert self.supervisor.poll() is None, f"{self.trace}: inferscope run ended with {self.supervisor.poll()}"
        return self

    def __exit__(self, *_: object) -> None:
        self.supervisor.kill()
        self.supervisor.wait()
        for pid in (self._recorder(), self.workload):
            self._kill(pid)

    def _numbers(self) -> tuple[int, int]:
        return struct.unpack_from("=qq", self._shared)

    def published(self) -> int:
        """Scopes that the workload has left."""
        return self._numbers()[0]

    @property
    def workload(self) -> int:
        return self._numbers()[1]

    def _until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s in vain: {what} ({self.trace})"
            time.sleep(0.002)

    def _manifest(self) -> dict[str, object]:
        with contextlib.suppress(OSError, ValueError):
            manifest: dict[str, object] = json.loads((self.trace / "manifest.json").read_bytes())
            return manifest
        return {}

    def _recorder(self) -> int:
        """The recorder's process: a child of the supervisor, or the last one that wrote the manifest."""
        pid = self._manifest().get("recorder_pid")
        return pid if isinstance(pid, int) and self._is_of_this(pid) else 0

    def _is_of_this(self, pid: int) -> bool:
        """Pids are used again: a process of this recording has its paths among its words."""
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            return _runs(pid) and (os.fsencode(self.trace) in words or os.fsencode(self._count) in words)
        return False

    def _kill(self, pid: int) -> None:
        if pid and self._is_of_this(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.kills += 1

    def play(self, kind: str, chance: random.Random, pauses: tuple[float, ...], most: int) -> int:
        """Kills as `kind` says. Returns how often."""

        def pause() -> None:
            time.sleep(chance.choice(pauses) * chance.random())  # Not to wait for something: to hit different moments.

        pause()
        if kind in (RECORDER, COMPLETING, ORPHAN):
            for _ in range(min(chance.randint(1, 12), most)):
                self._kill(self._recorder())
                pause()
        if kind == COMPLETING:
            self._end_workload()
            for _ in range(min(chance.randint(1, 8), most)):
                self._kill(self._recorder())
                pause()
        elif kind == WORKLOAD_KILLED:
            self._kill(self.workload)
        elif kind in (SUPERVISOR, ORPHAN):
            self._kill(self.supervisor.pid)
            pause()
            if kind == ORPHAN:
                self._kill(self._recorder())
        elif kind == ALL:
            victims = [self.supervisor.pid, self._recorder(), self.workload]
            chance.shuffle(victims)
            for pid in victims:
                self._kill(pid)
        return self.kills

    def _end_workload(self) -> None:
        if self._is_of_this(self.workload):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.workload, signal.SIGTERM)

    def complete(self) -> None:
        """Ends the workload, waits for everybody, and has the trace completed where nobody was left to do it."""
        self._end_workload()
        self.supervisor.wait(PATIENCE_S)
        self._until(lambda: not self._is_of_this(self.workload), "the workload has ended")
        # One that was just started is not in the manifest yet, but has the lock.
        self._until(lambda: not self._recorder() and not self._is_locked(), "the recorder has ended")
        if self._manifest().get("state") == "recording":
            done = subprocess.run([INFERSCOPE, "analyze", self.trace], capture_output=True, check=False)
            assert done.returncode == 0, f"{self.trace}: {done.stderr.decode()}"

    def _is_locked(self) -> bool:
        with (self.trace / "recorder.lock").open("rb") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        return True

    def remove(self) -> None:
        shutil.rmtree(self.trace)
        self._count.unlink()


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    return False
