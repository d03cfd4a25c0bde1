"""A scope as a decorator. The wrapper is of the same kind as the function: plain, coroutine, generator or asynchronous
generator, so that `inspect` and frameworks see no difference."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Scope


def decorate(scope: Scope, function: Any) -> Any:
    """Wraps a function so that each of its calls is inside the scope. What cannot be wrapped comes back unchanged."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(decorate(scope, function.__func__))
    if isinstance(function, type) or not callable(function):
        _warn(f"{scope!r} decorates {function!r}, which is not a function: it is left unchanged")
        return function
    if inspect.isasyncgenfunction(function):
        return _asynchronous_generator(scope, function)
    if inspect.iscoroutinefunction(function):
        return _coroutine(scope, function)
    if inspect.isgeneratorfunction(function):
        return _generator(scope, function)
    return _plain(scope, function)


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=4)


def _plain(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **keywords: Any) -> Any:
        with scope:
            return function(*args, **keywords)

    return wrapper


def _coroutine(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **keywords: Any) -> Any:
        with scope:
            return await function(*args, **keywords)

    return wrapper


def _generator(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    # The scope lasts from the first item to the last, but code that runs between two items is not inside it.
    @functools.wraps(function)
    def wrapper(*args: Any, **keywords: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **keywords)
        entry = scope._begin()
        if entry is None:
            return (yield from generator)
        try:
            item = next(generator)
            while True:
                entry.pause()
                try:
                    sent = yield item
                except GeneratorExit:
                    entry.resume()
                    generator.close()
                    raise
                except BaseException as error:
                    entry.resume()
                    item = generator.throw(error)
                else:
                    entry.resume()
                    item = generator.send(sent)
        except StopIteration as end:
            return end.value
        finally:
            entry.end()

    return wrapper


def _asynchronous_generator(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **keywords: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **keywords)
        entry = scope._begin()
        try:
            item = await generator.__anext__()
            while True:
                if entry is not None:
                    entry.pause()
                try:
                    sent = yield item
                except GeneratorExit:
                    if entry is not None:
                        entry.resume()
                    await generator.aclose()
                    raise
                except BaseException as error:
                    if entry is not None:
                        entry.resume()
                    item = await generator.athrow(error)
                else:
                    if entry is not None:
                        entry.resume()
                    item = await generator.asend(sent)
        except StopAsyncIteration:
            return
        finally:
            if entry is not None:
                entry.end()

    return wrapper
