# mypy: disable-error-code="import-not-found,attr-defined,no-untyped-call"
"""Which module an operator runs in: the innermost `nn.Module` that is being called around it, by the path that
`--layers` gives it. It is read from the frames of the thread, so that nothing of the program is hooked."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from .._layers.names import Names
from .arguments import escaped

# Frames beyond so many are not looked at, and letters beyond so many not written.
_DEEPEST, _MOST_LETTERS = 200, 200


class Modules:
    def __init__(self) -> None:
        self._code = torch.nn.Module.__call__.__code__
        self._names = Names()
        # By id(module). The reference tells whether it is still that module.
        self._known: dict[int, tuple[weakref.ref[Any], str]] = {}

    def forget(self) -> None:
        """Lets go of what is known about modules that are gone."""
        self._known = {number: known for number, known in self._known.items() if known[0]() is not None}
        self._names.forget()

    def around(self, frame: Any) -> str:
        """The path of the innermost module that is called from this frame or one around it; empty outside of all."""
        code = self._code
        for _ in range(_DEEPEST):
            if frame is None:
                return ""
            if frame.f_code is code:
                module = frame.f_locals["self"]
                known = self._known.get(id(module))
                if known is not None and known[0]() is module:
                    return known[1]
                return self._learn(frame, module)
            frame = frame.f_back
        return ""

    def _learn(self, frame: Any, module: Any) -> str:
        """Names begin with the outermost call: its paths are those of all modules in it."""
        calls = []
        for _ in range(_DEEPEST):
            if frame is None:
                break
            if frame.f_code is self._code:
                calls.append(frame.f_locals["self"])
            frame = frame.f_back
        path: str | None = None
        for one in reversed(calls):
            path = self._names.name(one, path)
        said = escaped(path or "", _MOST_LETTERS)
        self._known[id(module)] = (weakref.ref(module), said)
        return said
