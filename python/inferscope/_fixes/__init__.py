"""A fix that `inferscope verify` tries in this process: `INFERSCOPE_FIX` names it. What became of it is written into
the recording under a kind of its own: the program goes on whatever happens here, and nobody measures a fix that was not
there.

What each one does is in `process` and `torch_settings`; the command's table is in crates/diagnosis/src/fixes.rs."""

from __future__ import annotations

import os

from .. import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

_TORCH = ("tf32", "sdpa", "channels-last", "cudnn-benchmark", "pinned-copies")
# An error's text may be a page; a sentence is what the command shows.
_LONGEST = 300
_begun: list[str] = []


def say(moment: Literal["begin", "end", "waiting", "applied", "failed"], what: str) -> None:
    """`applied` when the fix is at work, `waiting` for what has to happen first, `failed` if it cannot be."""
    _native.fix_moment(moment, what[:_LONGEST])


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """Whatever goes wrong in it is written down and is not the program's business."""

    def call(*arguments: object) -> None:
        try:
            function(*arguments)
        except Exception as error:
            say("failed", f"{type(error).__name__}: {error}")

    return call


def begin() -> None:
    """To be called when recording has begun. Any number of times."""
    name = os.environ.get("INFERSCOPE_FIX", "")
    if not name or _begun:
        return
    _begun.append(name)
    import atexit

    say("begin", "the program begins")
    # The first to be registered is the last to be called: the program's own end is part of its time.
    atexit.register(say, "end", "the program ends")
    if name != "none":
        guarded(_start)(name, os.environ.get("INFERSCOPE_FIX_VALUE", ""))


def _start(name: str, value: str) -> None:
    if name in _TORCH:
        from .._after_import import after_import

        say("waiting", "PyTorch was never imported")
        after_import("torch", guarded(lambda: _in_torch(name)))
        return
    from . import process

    switch = process.SWITCHES.get(name)
    if switch is None:
        say("failed", f"this version of the package does not know {name!r}")
    else:
        switch(value)


def _in_torch(name: str) -> None:
    from . import torch_settings

    torch_settings.SWITCHES[name]()
