"""Loops whose iterations are steps. An iteration begins when its item is handed out and ends when the next one is asked
for, or when the loop is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Entry, Scope


def steps(over: Any, name: Any, tags: Any) -> _Over:
    """What `step(iterable, name=...)` gives."""
    from ._native import step

    one = step("step" if name is None else name, tags=tags)
    if not hasattr(over, "__aiter__"):
        return Steps(over, one)
    return BothSteps(over, one) if hasattr(over, "__iter__") else AsyncSteps(over, one)


class _Over:
    def __init__(self, over: Any, one: Scope) -> None:
        self._over = over
        self._one = one


class Steps(_Over):
    """Iterates over anything, as often as that can be iterated over."""

    def __iter__(self) -> Iterator[Any]:
        one = self._one
        for item in self._over:
            with one:
                yield item

    def __len__(self) -> int:
        return len(self._over)

    def __length_hint__(self) -> int:
        import operator

        return operator.length_hint(self._over)


class AsyncSteps(_Over):
    """Iterates over an asynchronous iterable. No generator: leaving the loop has to end the step at once."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return _AsyncSteps(self._over.__aiter__(), self._one)


class BothSteps(Steps, AsyncSteps):
    """For what can be iterated over in both ways. Frameworks ask which: each of the others knows only its own."""


class _AsyncSteps:
    __slots__ = ("_entry", "_items", "_one")

    def __init__(self, items: AsyncIterator[Any], one: Scope) -> None:
        self._items = items
        self._one = one
        self._entry: Entry | None = None

    def __aiter__(self) -> _AsyncSteps:
        return self

    async def __anext__(self) -> Any:
        self._end()
        item = await self._items.__anext__()
        self._entry = self._one._begin()
        return item

    def _end(self) -> None:
        entry, self._entry = self._entry, None
        if entry is not None:
            entry.end()

    def __del__(self) -> None:
        self._end()
