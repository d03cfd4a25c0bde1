"""What tells of begins: the program's own steps (`inferscope.step`, natively) and its outermost calls of models
(`_entries`). Where the program marks steps, calls of models are not told of any more; only a look that one of them has
begun still hears of them, or it would never end. While nobody listens neither costs anything."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from .. import _entries, _native


class _Listener:
    then: Callable[[str, bool], None] | None = None
    due = 0.0
    steps_seen = False


def listen(then: Callable[[str, bool], None] | None, seconds: float) -> None:
    """Calls `then(name, is_step)` at every begin from `seconds` from now on; never again without `then`."""
    _Listener.then, _Listener.due = then, monotonic() + seconds
    _native.ops_on_step(None if then is None else _step_begins, seconds)
    _entries.remove_hooks(_entry_begins, _entry_ends)
    if then is not None and not _Listener.steps_seen:
        _entries.add_hooks(_entry_begins, _entry_ends)


def _step_begins(name: str) -> None:
    _Listener.steps_seen = True
    if _Listener.then is not None:
        _Listener.then(name, True)


def _entry_begins(name: str, _entry: int) -> None:
    if _Listener.then is not None and monotonic() >= _Listener.due:
        _Listener.then(name, False)


def is_part(is_step: bool) -> bool:
    """A call of a model is a part of a step where the program marks these: no look begins with it."""
    return _Listener.steps_seen and not is_step


def _entry_ends(_name: str, _entry: int) -> None:
    """The end of a call is not the end of the loop's turn."""
