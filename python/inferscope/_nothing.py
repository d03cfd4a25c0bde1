"""What `scope`, `step` and `mark_event` are where the native part cannot be loaded: they do nothing, and the program
runs as if they were not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__version__ = "unknown"


class Scope:
    """Does nothing, as a context manager and as a decorator."""

    __slots__ = ()

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


_SCOPE = Scope()


def scope(name: object, tags: object = None) -> Scope:
    return _SCOPE


def step(over: Any = None, name: object = None, tags: object = None) -> Any:
    iterable = hasattr(over, "__iter__") or hasattr(over, "__aiter__") or hasattr(over, "__getitem__")
    if iterable and (name is not None or not isinstance(over, str)):
        return over
    return _SCOPE


def mark_event(name: object, metadata: object = None) -> None:
    return None
