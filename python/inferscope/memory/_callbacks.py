"""Calls what the program registered. A callback that raises is counted and remembered; it ends neither the tracker
nor the program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Argument = TypeVar("Argument")


class Callbacks(Generic[Argument]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: tuple[Callable[[Argument], Any], ...] = ()
        self.errors = 0
        self.last_error: str | None = None

    def add(self, callback: Callable[[Argument], Any]) -> None:
        if not callable(callback):
            raise TypeError(f"a callback must be callable, got {callback!r:.60}")
        with self._lock:
            self._all = (*self._all, callback)

    def remove(self, callback: Callable[[Argument], Any]) -> None:
        """Nothing happens where it is not registered."""
        with self._lock:
            self._all = tuple(each for each in self._all if each != callback)

    def call(self, argument: Argument) -> None:
        for callback in self._all:
            try:
                callback(argument)
            # SystemExit, too: the thread that calls is not the program's.
            except BaseException as error:
                with self._lock:
                    self.errors += 1
                    self.last_error = f"{type(error).__name__}: {error}"[:500]

    def __bool__(self) -> bool:
        return bool(self._all)
