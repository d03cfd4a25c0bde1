"""Tells when a thread ends, on that thread and while Python still knows it: what a thread keeps for itself is freed
then."""

from __future__ import annotations

from _thread import _local, get_ident
from collections.abc import Callable

_here = _local()


class _End:
    def __init__(self, then: Callable[[int], None]) -> None:
        self._thread, self._then = get_ident(), then

    def __del__(self) -> None:
        try:
            self._then(self._thread)
        except BaseException:
            return  # Python itself may be ending, and half of it gone.


def call(then: Callable[[int], None]) -> None:
    """Has `then` called with the number of this thread when it ends; once, however often it is asked for."""
    if not hasattr(_here, "end"):
        _here.end = _End(then)
