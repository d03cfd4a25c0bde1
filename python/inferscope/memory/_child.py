"""The native command beside this program: `inferscope track --stream`, which samples from outside. It is nobody's
child that the program could meet in `os.wait()`, it ends when the program does, however that ends, and it never makes
the program wait."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

from .. import _binary
from ._errors import MemoryProfilingError, TrackingError

# Written to a pipe as a whole or not at all (PIPE_BUF of Linux).
LONGEST_LINE = 4096
_CHUNK = 1 << 16
# `fcntl` names it from Python 3.10 on, where the C library that built it did.
_F_SETPIPE_SZ = 1031
# Starts a command in the background with our ends of its pipes, and ends at once: the command is init's then.
_SHELL = 'exec 3<&0; "$@" <&3 3<&- &'
_PYTHON = "import os, sys\nif not os.fork(): os.execv(sys.argv[1], sys.argv[1:])"


def command() -> str:
    """The native command's path."""
    binary = _binary.find()
    if binary is None:
        raise TrackingError(
            "the inferscope command was not found; reinstall the package, or set INFERSCOPE_BIN to its path"
        )
    return binary


def answer(arguments: Sequence[str]) -> str:
    """What the command prints. MemoryProfilingError says why it could not."""
    done = subprocess.run(
        [command(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, encoding="utf-8"
    )
    if done.returncode != 0:
        raise MemoryProfilingError(said(done.stderr))
    return done.stdout


def said(stderr: str) -> str:
    """What the command said of its end."""
    lines = [line.removeprefix("inferscope: ").strip() for line in stderr.splitlines() if line.strip()]
    # The hint is for the command line; here it is an argument of the same name.
    return " ".join(lines).replace("--output", "output=...") or "the inferscope command ended without a message"


class Child:
    """A running tracker: lines come from it and go to it."""

    def __init__(self, arguments: Sequence[str]) -> None:
        if os.access("/bin/sh", os.X_OK):
            starter = ["/bin/sh", "-c", _SHELL, "sh"]
        else:
            starter = [sys.executable, "-I", "-S", "-c", _PYTHON]
        binary = command()
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this does
        requests, self._requests = os.pipe()
        self._events, events = os.pipe()
        try:
            # A session of its own: Ctrl-C in the terminal is for the program.
            subprocess.run(
                [*starter, binary, *arguments],
                stdin=requests,
                stdout=events,
                stderr=self._said,
                start_new_session=True,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.close()
            raise TrackingError(f"the tracker did not start: {error}") from error
        finally:
            os.close(requests)
            os.close(events)
        for pipe in (self._requests, self._events):
            # Room for some seconds in which one of both is busy; with less it works, too.
            with suppress(OSError):
                fcntl.fcntl(pipe, _F_SETPIPE_SZ, 1 << 20)
        # A tracker that is stopped must not stop the program.
        os.set_blocking(self._requests, False)
        self._rest = b""

    def send(self, line: bytes) -> bool:
        """False: it has no room for it, or has ended."""
        if self._requests < 0 or len(line) > LONGEST_LINE:
            return False
        try:
            return os.write(self._requests, line) == len(line)
        except OSError:
            return False

    def first(self, timeout: float) -> bytes:
        """The first line. TrackingError says why there is none."""
        end = time.monotonic() + timeout
        while b"\n" not in self._rest:
            # Not `select`, which refuses the descriptors of a program that has a thousand files open.
            waiting = select.poll()
            waiting.register(self._events, select.POLLIN)
            if not waiting.poll(max(end - time.monotonic(), 0) * 1000):
                raise TrackingError(f"the tracker did not answer within {timeout:.0f} seconds")
            chunk = os.read(self._events, _CHUNK)
            if not chunk:
                raise TrackingError(self.why())
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def lines(self) -> Iterator[bytes]:
        """Every line until it ends. For one thread, which may wait here while others send."""
        while True:
            *whole, self._rest = self._rest.split(b"\n")
            yield from whole
            try:
                chunk = os.read(self._events, _CHUNK)
            except OSError:
                return
            if not chunk:
                return
            self._rest += chunk

    def why(self) -> str:
        """What it said on stderr."""
        self._said.seek(0)
        return said(self._said.read().decode(errors="replace"))

    def end(self) -> None:
        """It ends after what it was told so far; `lines` goes on until it has."""
        if self._requests >= 0:
            requests, self._requests = self._requests, -1
            os.close(requests)

    def close(self) -> None:
        """Lets go of everything. In a forked child, too: there it only closes copies."""
        self.end()
        if self._events >= 0:
            events, self._events = self._events, -1
            os.close(events)
        self._said.close()
