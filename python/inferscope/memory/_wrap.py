"""Puts a `with` statement around each call of a function, which stays of its kind: plain, coroutine, generator or
asynchronous generator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Around = Callable[[], AbstractContextManager[Any]]


def wrapped(function: Function, around: Around) -> Function:
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"only functions can be profiled this way, got {function!r:.60}; use profile_context instead")
    if inspect.isasyncgenfunction(function):
        made: Callable[..., Any] = _asynchronous_generator(function, around)
    elif inspect.iscoroutinefunction(function):
        made = _coroutine(function, around)
    elif inspect.isgeneratorfunction(function):
        made = _generator(function, around)
    else:
        made = _plain(function, around)
    return cast("Function", functools.wraps(function)(made))


def _plain(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    def call(*args: Any, **keywords: Any) -> Any:
        with around():
            return function(*args, **keywords)

    return call


def _coroutine(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    async def call(*args: Any, **keywords: Any) -> Any:
        with around():
            return await function(*args, **keywords)

    return call


def _generator(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    def call(*args: Any, **keywords: Any) -> Generator[Any, Any, Any]:
        with around():
            return (yield from function(*args, **keywords))

    return call


def _asynchronous_generator(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    async def call(*args: Any, **keywords: Any) -> AsyncGenerator[Any, Any]:
        with around():
            generator = function(*args, **keywords)
            try:
                item = await generator.__anext__()
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        item = await generator.athrow(error)
                    else:
                        item = await generator.asend(sent)
            except StopAsyncIteration:
                return
            finally:
                await generator.aclose()

    return call
