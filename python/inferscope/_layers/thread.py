"""A thread of ours in the program: no thread of `threading`, so that the program's own count stays as it is, and gone
before the interpreter is. CPython 3.10 crashes at its end where a thread is just being born, or waits for the
interpreter's lock."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
from collections.abc import Callable
from typing import Any

# The longest that a program waits for it at its end.
_EXIT_S = 1.0


class QuietThread:
    """Runs `work`, which ends soon after `stop` was called."""

    def __init__(self, work: Callable[[], None], stop: Callable[[], None]) -> None:
        self._work, self._stop, self._pid = work, stop, os.getpid()
        self._begun = _thread.allocate_lock()
        self._begun.acquire()
        self._sentinel: Any = None
        self._handle: Any = None
        atexit.register(self._end)
        joinable = getattr(_thread, "start_joinable_thread", None)
        if joinable is not None:
            self._handle = joinable(self._run, daemon=True)
        else:
            _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        if self._handle is None and hasattr(_thread, "_set_sentinel"):
            # Free when nothing is left of the thread in the interpreter.
            self._sentinel = _thread._set_sentinel()
        with contextlib.suppress(RuntimeError):
            self._begun.release()
        self._work()

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return  # A forked child has no such thread.
        self._stop()
        if self._handle is not None:
            with contextlib.suppress(Exception):
                self._handle.join(_EXIT_S)
            return
        if self._begun.acquire(timeout=_EXIT_S) and self._sentinel is not None:
            self._sentinel.acquire(timeout=_EXIT_S)
