# mypy: disable-error-code="import-not-found,attr-defined"
"""How many ids of a table are padding: runs of one id at the end or the beginning of its rows. Only tables in the
host's memory are counted: a GPU would have to be waited for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

_IDS = (torch.int64, torch.int32)
# A shorter row has no padding worth a word; of a longer table so many ids are counted, which takes a fraction of a
# millisecond.
_LEAST_LENGTH, _MOST_IDS = 16, 1 << 18


def counted(tensor: Any) -> tuple[int, int, int, int] | None:
    """Ids that were counted, how many of them are padding, how many of these all rows have, and which id it is; None
    where the tensor is no table of ids in the host's memory, or has no padding."""
    if type(tensor) is not torch.Tensor or tensor.dtype not in _IDS or tensor.device.type != "cpu":
        return None
    if tensor.layout is not torch.strided or tensor.dim() != 2 or not tensor.is_contiguous():
        return None
    rows, length = tensor.shape
    if rows == 0 or length < _LEAST_LENGTH or length > _MOST_IDS:
        return None
    shown = min(rows, _MOST_IDS // length)
    table = tensor[:shown]
    # Padding stands on one side of all rows.
    found = max((_runs(table.flip(1)), _runs(table)), key=lambda one: sum(one[0]))
    runs, value = found
    padding = sum(runs)
    # A table of one value has none: it is made up, or it is no table of ids.
    if padding == 0 or padding == shown * length or value < 0:
        return None
    # Rows that were not looked at may be longer.
    common = shown * min(runs) if shown == rows else 0
    return shown * length, padding, common, value


def _runs(table: Any) -> tuple[list[int], int]:
    """How many of the first ids of each row are the one that most rows begin with. One alone is a mark of the text."""
    value = Counter(table[:, 0].tolist()).most_common(1)[0][0]
    others = table != value
    first = others.to(torch.uint8).argmax(1).tolist()
    length = table.shape[1]
    whole = (~others.any(1)).tolist()
    runs = [length if all_alike else run for run, all_alike in zip(first, whole, strict=True)]
    return [run if run > 1 else 0 for run in runs], int(value)
