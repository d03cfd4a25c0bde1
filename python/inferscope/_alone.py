"""A recorder for a program that nobody started with `inferscope run`: a process of its own that no `os.wait()` of the
program ever sees, told what to do by files in the segments' folder (`ready`, `stop`, `done`)."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from . import _binary, _driver, _native, _program

_READY_S = 2.0
_AT_EXIT_S = 10.0
_DEFAULT_SIZE_MB = 100
_SHARED_MEMORY = "/dev/shm"


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
        self.output = _output(output)
        self.report: str | None = os.path.join(self.output, "report.md")
        self._segments = _folder(self.output, options)
        self._saved: dict[str, str | None] = {}
        try:
            # Both the library in this process and the recorder, which inherits them, read these.
            self._set_environment({"INFERSCOPE_SEGMENTS": self._segments, **_environment(options)})
            self._set_environment(_driver.environment())
            reason = join()
            if reason is not None:
                raise CannotRecord(reason)
            # What it says, for as long as we listen; the file has no name and goes with the last who has it open.
            with tempfile.TemporaryFile() as said:
                self._pid = _spawn([binary, *_arguments(self._segments, self.output, options)], said)
                _native.allow(self._pid)
                self._set_environment({"INFERSCOPE_RECORDER_PID": str(self._pid)})
                self._wait_until_ready(said)
        except BaseException as error:
            _native.stop()
            self._clean()
            if isinstance(error, OSError):
                raise CannotRecord(f"the recorder did not start: {error}") from error
            raise
        atexit.register(self._at_exit)

    def is_ours(self) -> bool:
        """False in a forked child: the recorder is the parent's."""
        return os.getpid() == self._owner

    def finish(self, timeout: float) -> str | None:
        """Has the trace completed and waits for that. Returns the report's path."""
        atexit.unregister(self._at_exit)
        try:
            with open(os.path.join(self._segments, "stop"), "w", encoding="utf-8"):
                pass
        except OSError:
            pass  # The folder is gone, and with it the recorder's interest.
        done = os.path.join(self._segments, "done")
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
            self.finish(_AT_EXIT_S)

    def _wait_until_ready(self, said: IO[bytes]) -> None:
        ready = os.path.join(self._segments, "ready")
        self._poll(lambda: os.path.exists(ready), _READY_S)
        if not os.path.exists(ready) and not _alive(self._pid):
            said.seek(0)
            words = said.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise CannotRecord(f"the recorder ended at once: {words[-1]}")

    def _poll(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits for a condition that the living recorder brings about."""
        deadline = time.monotonic() + timeout
        pause = 0.001
        while not condition():
            if not _alive(self._pid) or time.monotonic() >= deadline:
                return condition()
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return True

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
        shutil.rmtree(self._segments, ignore_errors=True)


def _output(output: str | os.PathLike[str] | None) -> str:
    chosen = output or os.environ.get("INFERSCOPE_OUTPUT")
    if chosen:
        return os.path.abspath(os.fspath(chosen))
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{_program.stem()}-{os.getpid()}"
    path = os.path.abspath(os.path.join("inferscope-traces", name))
    unique, number = path, 2
    while os.path.exists(unique):
        unique, number = f"{path}-{number}", number + 1
    return unique


def _folder(output: str, options: Mapping[str, Any]) -> str:
    """A folder for the segments in shared memory, or beside the trace where that is too small."""
    wanted = (options.get("trace_size_mb") or _number("INFERSCOPE_TRACE_SIZE_MB") or _DEFAULT_SIZE_MB) << 20
    prefix = f"inferscope-{os.getuid()}-{os.getpid()}-"
    try:
        room = os.statvfs(_SHARED_MEMORY)
        if room.f_bavail * room.f_frsize >= wanted:
            return tempfile.mkdtemp(prefix=prefix, dir=_SHARED_MEMORY)
    except OSError:
        pass
    try:
        folder = os.path.join(output, "segments")
        os.makedirs(folder, mode=0o700)
    except OSError as error:
        raise CannotRecord(f"no place for the segments: {error}") from error
    return folder


def _number(name: str) -> int | None:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return None


def _calls(calls: bool | str) -> str:
    return "c" if calls == "c" else "1" if calls else "0"


def _environment(options: Mapping[str, Any]) -> dict[str, str]:
    """What the native part reads; an option that was not given stays as the environment has it."""
    values = {}
    if options["calls"] is not None:
        values["INFERSCOPE_CALLS"] = _calls(options["calls"])
    if options["include"]:
        values["INFERSCOPE_CALLS_INCLUDE"] = ",".join(options["include"])
    if options["exclude"]:
        values["INFERSCOPE_CALLS_EXCLUDE"] = ",".join(options["exclude"])
    if options["min_us"] is not None:
        values["INFERSCOPE_CALLS_MIN_US"] = str(options["min_us"])
    if options["trace_size_mb"] is not None:
        values["INFERSCOPE_TRACE_SIZE_MB"] = str(options["trace_size_mb"])
    if options["gpu_detail"] is not None:
        values["INFERSCOPE_GPU_DETAIL"] = str(options["gpu_detail"])
    if options["overhead_budget"] is not None:
        values["INFERSCOPE_OVERHEAD_BUDGET"] = str(options["overhead_budget"])
    if options["layers"] is not None:
        values["INFERSCOPE_LAYERS"] = "1" if options["layers"] else "0"
    return values


def _arguments(segments: str, output: str, options: Mapping[str, Any]) -> list[str]:
    arguments = ["record", "--segments", segments, "--pid", str(os.getpid()), "--output", output]
    if options["rate_hz"] is not None:
        arguments += ["--rate", str(options["rate_hz"])] if options["rate_hz"] else ["--no-stacks"]
    if options["calls"]:
        arguments.append("--calls=c" if options["calls"] == "c" else "--calls")
    for flag, patterns in (("--include", options["include"]), ("--exclude", options["exclude"])):
        for pattern in patterns:
            arguments += [flag, pattern]
    if options["native"]:
        arguments.append("--native")
    for flag, value in (
        ("--min-us", options["min_us"]),
        ("--memory-hz", options["memory_hz"]),
        ("--trace-size-mb", options["trace_size_mb"]),
    ):
        if value is not None:
            arguments += [flag, str(value)]
    return arguments


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
