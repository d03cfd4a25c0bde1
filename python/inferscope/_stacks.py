"""Has the reading of Python's frames without the GIL tried on frames of every kind, before it is used for the stacks of
blocks: each is compared with what the interpreter says of it. Where one differs, blocks have no stacks and the report
says so."""

from __future__ import annotations

from types import FunctionType

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Result = str | None


def begin() -> None:
    """Switches the reading on, if it reads what is there. Any number of times."""
    try:
        found = _difference()
    except Exception as error:
        found = f"{type(error).__name__} while trying"
    _native.stacks_begin(found)


def _difference() -> Result:
    for way in (_called, _through_c, _generated, _awaited, _on_several_lines, _by_names, _in_a_class, _deleted, _deep):
        found = way()
        if found is not None:
            return found
    return None


def _called(check: Callable[[], Result] = _native.stacks_check) -> Result:
    def inner() -> Result:
        return check()

    return inner()


def _through_c() -> Result:
    """C between two frames, twice."""
    results: list[Result] = []

    def each(one: int) -> int:
        results.extend(map(lambda _: _native.stacks_check(), [one]))
        return one

    sorted([2, 1], key=each)
    return next((result for result in results if result is not None), None)


def _generated() -> Result:
    def inner() -> Iterator[Result]:
        yield _native.stacks_check()
        yield from (result for result in [_native.stacks_check()])

    return next((result for result in inner() if result is not None), None)


def _awaited() -> Result:
    async def inner() -> Result:
        return _native.stacks_check()

    async def outer() -> Result:
        return await inner()

    coroutine = outer()
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: Result = done.value
        return found
    return "a coroutine"


def _on_several_lines() -> Result:
    results = [
        _native.stacks_check(),
        (_native.stacks_check()
         or _native.stacks_check()),
    ]  # fmt: skip
    try:
        raise ValueError
    except ValueError:
        results.append(_native.stacks_check())
    return next((result for result in results if result is not None), None)


def _by_names() -> Result:
    """Names and files whose characters take one byte, two and four."""
    for name in ("m\xe9moire", "\u8bb0\u5fc6", "\U000102a0"):
        words = {"co_name": name, "co_filename": f"/{name}.py", "co_firstlineno": 2_000_000}
        if hasattr(_called.__code__, "co_qualname"):
            words["co_qualname"] = f"Class.{name}"
        code = _called.__code__.replace(**words)  # type: ignore[arg-type]
        function = FunctionType(code, globals(), name, (_native.stacks_check,))
        found: Result = function()
        if found is not None:
            return found
    return None


def _in_a_class() -> Result:
    class Body:
        found = _native.stacks_check()

    return Body.found


def _deleted() -> Result:
    results: list[Result] = []

    class Last:
        def __del__(self) -> None:
            results.append(_native.stacks_check())

    def leave() -> None:
        last = Last()
        assert last

    leave()
    return results[0] if results else "an object that goes"


def _deep(depth: int = 80) -> Result:
    return _deep(depth - 1) if depth else _native.stacks_check()
