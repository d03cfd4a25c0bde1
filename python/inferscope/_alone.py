"""A recorder for a program that nobody started with `inferscope run`: a process of its own that no `os.wait()` of the
program ever sees. It says by a file (`ready`) where and how to record; files in the segments' folder (`stop`, `done`)
say the rest."""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from . import _binary, _driver, _native, _settings

# Reading its settings takes it milliseconds. Who waits longer has a machine that could not record much either.
_READY_S = 10.0
_AT_EXIT_S = 10.0


class CannotRecord(Exception):
    """Why there is no recorder. The program goes on without."""


class Recorder:
    """The recorder of this process. `join` makes the process write into the folder that the environment names."""

    def __init__(
        self, output: str | os.PathLike[str] | None, options: Mapping[str, Any], join: Callable[[], str | None]
    ) -> None:
        binary = _binary.find()
        if binary is None:
            raise CannotRecord(
                "the inferscope command was not found; reinstall the package, or set INFERSCOPE_BIN to its path"
            )
        self._owner = os.getpid()
        self._segments: str | None = None
        self._saved: dict[str, str | None] = {}
        try:
            # What the native part and children read: the settings that are in force, wherever they come from.
            told = self._started(binary, _settings.arguments(output, options))
            self.report: str | None = os.path.join(told["INFERSCOPE_TRACE"], "report.md")
            self._set_environment(told)
            self._set_environment(_driver.environment())
            reason = join()
            if reason is not None:
                raise CannotRecord(reason)
        except BaseException as error:
            _native.stop()
            self._clean()
            if isinstance(error, OSError):
                raise CannotRecord(f"the recorder did not start: {error}") from error
            raise
        atexit.register(self._at_exit)

    def _started(self, binary: str, flags: list[str]) -> Mapping[str, str]:
        """Starts the recorder. Returns what it answers when it has read the settings and made its folders."""
        # What it says, for as long as we listen; the file has no name and goes with the last who has it open.
        with tempfile.TemporaryDirectory(prefix="inferscope-") as folder, tempfile.TemporaryFile() as said:
            answer = os.path.join(os.path.abspath(folder), "answer")
            os.mkdir(answer)
            ready = os.path.join(answer, "ready")
            try:
                self._pid = _spawn([binary, "record", f"--ready={ready}", f"--pid={self._owner}", *flags], said)
                _native.allow(self._pid)
                self._poll(lambda: os.path.exists(ready), _READY_S)
            finally:
                # Also when we are interrupted: either it has answered by now, and ends when we take the segments away,
                # or it cannot answer any more, and ends because of that.
                told = _taken(answer)
                self._segments = told.get("INFERSCOPE_SEGMENTS")
            if told:
                return told
            if _alive(self._pid):
                raise CannotRecord(f"the recorder did not answer within {_READY_S:.0f} seconds")
            said.seek(0)
            raise CannotRecord(_why(said.read().decode(errors="replace")))

    def is_ours(self) -> bool:
        """False in a forked child: the recorder is the parent's."""
        return os.getpid() == self._owner

    def finish(self, timeout: float, ends: bool = False) -> str | None:
        """Has the trace completed and waits for that. Returns the report's path. Where the program does not end by
        this, the recorder makes way for it: one core, and the lowest priority."""
        atexit.unregister(self._at_exit)
        segments = self._segments or ""
        try:
            # Whole or not at all: the recorder looks at any moment.
            asked = os.path.join(segments, ".stop.new")
            with open(asked, "w", encoding="utf-8") as file:
                file.write("ends" if ends else "")
            os.rename(asked, os.path.join(segments, "stop"))
        except OSError:
            pass  # The folder is gone, and with it the recorder's interest.
        done = os.path.join(segments, "done")
        if self._poll(lambda: os.path.exists(done), timeout):
            try:
                with open(done, encoding="utf-8", errors="surrogateescape") as file:
                    self.report = file.readline().rstrip("\n") or self.report
            except OSError:
                pass
            _native.discard()
            self._clean()
        else:
            self._restore_environment()
        return self.report

    def _at_exit(self) -> None:
        if self.is_ours():
            _native.stop()
            self.finish(_AT_EXIT_S, ends=True)

    def _poll(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits for a condition that the living recorder brings about."""
        deadline = time.monotonic() + timeout
        pause = 0.001
        while not condition():
            if not self._recorder_lives() or time.monotonic() >= deadline:
                return condition()
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return True

    def _recorder_lives(self) -> bool:
        """What we started supervises the recorder, which goes on without it and holds a lock as long as it lives."""
        if _alive(self._pid) or self._segments is None:
            return _alive(self._pid)
        try:
            with open(os.path.join(self._segments, "trace"), "rb") as trace:
                fcntl.flock(trace, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno == errno.EWOULDBLOCK
        return False

    def _set_environment(self, values: Mapping[str, str]) -> None:
        # Children inherit it: those that import inferscope are recorded too.
        for name, value in values.items():
            self._saved.setdefault(name, os.environ.get(name))
            os.environ[name] = value

    def _restore_environment(self) -> None:
        for name, value in self._saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._saved.clear()

    def _clean(self) -> None:
        self._restore_environment()
        if self._segments is not None:
            shutil.rmtree(self._segments, ignore_errors=True)


def _taken(answer: str) -> Mapping[str, str]:
    """What is in the folder for the recorder's answer, which is closed by that."""
    closed = f"{answer}.closed"
    os.rename(answer, closed)
    try:
        with open(os.path.join(closed, "ready"), "rb") as file:
            return _settings.variables(file.read())
    except FileNotFoundError:
        return {}


def _why(said: str) -> str:
    """Why the recorder could not record: its last sentence, without advice for a command line that may follow."""
    lines = [line for line in said.splitlines() if line.strip()]
    ours = [line.removeprefix("inferscope: ") for line in lines if line.startswith("inferscope: ")]
    return ours[-1] if ours else f"the recorder exited at once: {lines[-1].strip() if lines else 'no message'}"


# Starts a command in the background and says its pid. Whoever does it ends at once, so the command is nobody's child.
_SHELL = '"$@" </dev/null >/dev/null & echo $!'
_PYTHON = """import os, sys
pid = os.fork()
if pid:
    print(pid)
else:
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.execv(sys.argv[1], sys.argv[1:])"""


def _spawn(command: list[str], said: IO[bytes]) -> int:
    if os.access("/bin/sh", os.X_OK):
        starter = ["/bin/sh", "-c", _SHELL, "sh"]
    else:
        starter = [sys.executable, "-I", "-S", "-c", _PYTHON]
    # A session of its own: Ctrl-C in the terminal is for the program, the recorder stays to the end.
    started = subprocess.run(
        [*starter, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=said,
        start_new_session=True,
        check=False,
    )
    try:
        return int(started.stdout)
    except ValueError:
        raise CannotRecord(f"{starter[0]} could not start the recorder") from None


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[-1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False
