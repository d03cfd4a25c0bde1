# mypy: disable-error-code="import-not-found,attr-defined,no-untyped-call,misc"
"""A look: every operator that PyTorch runs on a thread becomes a record with its arguments, its line, its module, and
the values that it read and wrote."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _native
from . import safety
from .arguments import Arguments, escaped
from .modules import Modules
from .operator import Operator
from .values import Values

# Enough for two steps of a large model in eager mode; a look that meets more ends there, and so does one that has cost
# so much: with the pause after it, two in a minute are a hundredth of it.
_MOST_OPS, _MOST_COST_S = 10_000, 0.3
_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (torch.__file__, os.path.dirname(os.path.abspath(__file__)))
)
# Frames between an operator and the program's line: beyond so many none is looked for.
_DEEPEST = 200


class _Mode(TorchDispatchMode):
    """What it does is said by the attribute that is native."""

    supports_higher_order_operators = True


class Look:
    def __init__(self, number: int, failed: Callable[[BaseException], None], modules: Modules) -> None:
        self.mode = _Mode()
        self.mode.__torch_dispatch__ = _native.OpDispatch(self.mode, self._before, self._after, failed)
        self.on = False
        self.turn = 0
        self.seen = 0
        self._number = number
        self._cost = 0.0
        self._values = Values()
        self._modules = modules
        self._lines: dict[tuple[Any, int], str] = {}
        self._operators: dict[Any, Operator] = {}

    def end(self) -> None:
        self.on = False
        self._values = Values()
        self._modules.forget()

    def try_out(self) -> None:
        """Raises here, and not in the program, should this PyTorch take no mode like ours."""
        safety.push(self.mode)
        try:
            torch.empty(0)
        finally:
            safety.pop(self.mode)

    def cost_s(self) -> float:
        """What it took besides the operators themselves: as much again goes into being called at all."""
        return 2 * self._cost

    def _before(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        if not self.on:
            return None
        began = perf_counter()
        # An operator that raises has no end that could say that it is the last.
        if self.seen > _MOST_OPS or safety.is_capturing():
            self.on = False
            return None
        self.seen += 1
        operator = self._operators.get(function)
        if operator is None:
            operator = self._operators[function] = Operator(function)
        # The sizes of a tensor are asked for by no code of the program's.
        with torch._C.DisableTorchFunction():
            arguments = Arguments(operator, args, kwargs or {}, self._values)
        seen = (operator.call, operator, arguments, self._place(), self.turn)
        self._cost += perf_counter() - began
        return seen

    def _after(self, seen: tuple[Any, Operator, Arguments, str, int], result: Any, begin: int, end: int) -> None:
        began = perf_counter()
        _, operator, arguments, place, turn = seen
        with torch._C.DisableTorchFunction():
            text = arguments.text(operator, result, self._values)
        last = ""
        if self.seen >= _MOST_OPS or self.cost_s() >= _MOST_COST_S:
            # What runs after it in this turn is not recorded.
            self.on, last = False, ',"last":1'
        _native.op(operator.name, begin, end, f'{{{text},{place},"turn":[{self._number},{turn}]{last}}}')
        self._cost += perf_counter() - began

    def _place(self) -> str:
        frame: Any = sys._getframe(2)
        line, module = self._line(frame), self._modules.around(frame)
        return f'"at":"{line}","module":"{module}"' if module else f'"at":"{line}"'

    def _line(self, frame: Any) -> str:
        """The nearest line that is neither PyTorch's nor ours."""
        for _ in range(_DEEPEST):
            if frame is None or not frame.f_code.co_filename.startswith(_LIBRARIES):
                break
            frame = frame.f_back
        if frame is None:
            return ""
        code = frame.f_code
        key = (code, frame.f_lineno)
        line = self._lines.get(key)
        if line is None:
            name = getattr(code, "co_qualname", code.co_name)
            line = self._lines[key] = escaped(f"{code.co_filename}:{frame.f_lineno} {name}", 400)
        return line
