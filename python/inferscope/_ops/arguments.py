# mypy: disable-error-code="import-not-found,attr-defined"
"""The arguments and results of one operator as JSON, with the keys that torch.profiler uses and its names of types, and
beside them the values: `in` what it read, `out` what came of it, `into` what it wrote into, `over` which of these it
did not read, `params` which of `in` are parameters of a model, `padded` how much of ids is padding; `view`, `random`
and `cut` (a list was too long to write) are 1 where they are so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import padding
from .operator import Operator
from .values import Storage, Values

# Tensors of a list, and letters of a scalar, that are written.
_MOST_TENSORS, _MOST_LETTERS = 48, 60
# A record holds 4096 bytes; what is left of them is for the line.
_LONGEST = 3400

_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int16: "short int",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
    torch.complex64: "c10::complex<float>",
    torch.complex128: "c10::complex<double>",
}


def escaped(text: str, most: int) -> str:
    """A text as it stands between quotes in JSON."""
    text = text[:most]
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    import json

    return json.dumps(text)[1:-1]


class Arguments:
    """What can be said before the operator has run."""

    __slots__ = ("_cut", "_dims", "_into", "_over", "_padded", "_params", "_read", "_scalars", "_types", "_written")

    def __init__(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], values: Values) -> None:
        self._dims: list[str] = []
        self._types: list[str] = []
        self._scalars: list[str] = []
        self._read: list[int] = []
        self._into: list[int] = []
        self._over: list[int] = []
        self._params: list[int] = []
        self._written: list[Storage] = []
        self._padded: tuple[int, ...] | None = None
        self._cut = False
        for key, one in (*enumerate(args), *kwargs.items()):
            written = key in operator.writes
            if isinstance(one, torch.Tensor):
                self._tensor(one, written, operator.only_writes, values)
                if operator.takes_ids and not written and self._padded is None:
                    self._padded = padding.counted(one)
            elif isinstance(one, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in one):
                self._list(one, written, operator.only_writes, values)
            else:
                self._dims.append("[]")
                self._types.append("")
                self._scalars.append(escaped(_scalar(one), _MOST_LETTERS))

    def _tensor(self, tensor: Any, written: bool, only_writes: bool, values: Values) -> None:
        self._dims.append(_dims(tensor))
        self._types.append(_type(tensor))
        self._scalars.append("")
        self._value(tensor, written, only_writes, values)

    def _list(self, tensors: Any, written: bool, only_writes: bool, values: Values) -> None:
        shown = [item for item in tensors[:_MOST_TENSORS] if isinstance(item, torch.Tensor)]
        self._cut |= len(tensors) > _MOST_TENSORS
        self._dims.append(f"[{','.join(map(_dims, shown))}]")
        self._types.append("TensorList")
        self._scalars.append("")
        for item in shown:
            self._value(item, written, only_writes, values)

    def _value(self, tensor: Any, written: bool, only_writes: bool, values: Values) -> None:
        storage = values.storage(tensor)
        number = 0 if storage is None else storage.value
        if written and storage is not None:
            self._written.append(storage)
            self._into.append(number)
        if written and only_writes:
            self._over.append(number)
        else:
            self._read.append(number)
            if type(tensor) is torch.nn.Parameter:
                self._params.append(number)

    def text(self, operator: Operator, result: Any, values: Values) -> str:
        """All of it, when it has run."""
        for storage in self._written:
            values.write(storage)
        results = [result] if isinstance(result, torch.Tensor) else result if isinstance(result, (list, tuple)) else []
        cut = self._cut or len(results) > _MOST_TENSORS
        out = [one for one in results[:_MOST_TENSORS] if isinstance(one, torch.Tensor)]
        storages = [values.storage(one) for one in out]
        numbers = [0 if one is None else one.value for one in storages]
        # Some that write in place give nothing back.
        numbers += [one.value for one in self._written if one.value not in numbers]
        ids = f'"in":{_list(self._read)},"out":{_list(numbers)}'
        for key, those in (("into", self._into), ("over", self._over), ("params", self._params)):
            if those:
                ids += f',"{key}":{_list(those)}'
        if self._padded is not None:
            ids += f',"padded":{_list(self._padded)}'
        # What may give a view gives a new tensor where it has to (`to`, `contiguous`, `reshape`).
        is_view = operator.is_view and all(number in self._read for number in numbers)
        for key, flag in (("view", is_view), ("random", operator.is_random), ("cut", cut)):
            if flag:
                ids += f',"{key}":1'
        device = out[0].device if out else ""
        sizes = f'"Input Dims":[{",".join(self._dims)}],"Input type":[{_quoted(self._types)}]'
        sizes += f',"Concrete Inputs":[{_quoted(self._scalars)}]'
        sizes += f',"Output Dims":[{",".join(map(_dims, out))}],"Output type":[{_quoted(map(_type, out))}]'
        text = f'{sizes},"device":"{device}",{ids}'
        # Without sizes it still says what depends on what.
        return text if len(text) <= _LONGEST else f'{ids},"cut":1' if len(ids) <= _LONGEST else '"cut":1'


def _list(numbers: Sequence[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def _quoted(texts: Any) -> str:
    return ",".join(f'"{text}"' for text in texts)


def _dims(tensor: Any) -> str:
    return f"[{','.join(map(str, tensor.shape))}]"


def _type(tensor: Any) -> str:
    return _TYPES.get(tensor.dtype) or str(tensor.dtype)


def _scalar(one: Any) -> str:
    if one is None:
        return ""
    # What a program may have passed through has a text of its own making: only plain ones are asked.
    if type(one) in (bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format):
        return str(one)
    if isinstance(one, (list, tuple)) and all(type(item) in (bool, int, float) for item in one[:_MOST_LETTERS]):
        return str(list(one[:_MOST_LETTERS]))
    return type(one).__name__
