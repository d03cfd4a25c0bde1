"""Phases of a program (`load`, `warm-up`, `serve`), which nest in each thread and task by themselves."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any

_path: ContextVar[tuple[str, ...]] = ContextVar("inferscope_memory_phase", default=())
_numbers = itertools.count(1)

Record = Callable[[str, str, Mapping[str, Any]], object]


class PhaseHandle:
    """A phase that is open: `close` it, or use it in a `with` statement. Closing it twice does nothing."""

    def __init__(self, record: Record, name: str, metadata: Mapping[str, Any] | None) -> None:
        self._record = record
        self._before = _path.get()
        self._path = (*self._before, str(name))
        self._fields = {**(metadata or {}), "phase": str(name), "phase_number": next(_numbers)}
        self._lock = threading.Lock()
        self._closed = False
        _path.set(self._path)
        record("phase_enter", self.phase_path, self._fields)

    @property
    def phase_path(self) -> str:
        """`serve/prefill`: the phase with those around it."""
        return "/".join(self._path)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        # Closed elsewhere, or out of order: what is open there is not ours to close.
        if _path.get() == self._path:
            _path.set(self._before)
        self._record("phase_exit", self.phase_path, self._fields)

    def __enter__(self) -> PhaseHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
