"""How a program of this folder marks its requests: with InferScope's API where its first argument is `marked`, else not
at all."""

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

MARKED = sys.argv[1:2] == ["marked"]


def requests(over: Iterable) -> Iterable:
    if not MARKED:
        return over
    from inferscope import step

    return step(over, name="request")


def request() -> AbstractContextManager:
    if not MARKED:
        return nullcontext()
    from inferscope import step

    return step("request")
