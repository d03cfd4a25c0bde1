# mypy: disable-error-code="import-not-found,attr-defined,no-untyped-call"
"""Numbers for the values that tensors hold: the same number, the same memory with the same contents. A write into it
makes a new value. Nothing is kept alive: only the storage's own small header stays while a look lasts, so that no
other storage takes its place in memory unnoticed."""

from __future__ import annotations

from itertools import count
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

# Tensors whose storage is what it seems: a subclass may answer with code of the program's.
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Storage:
    """One storage that was met: its present value, and the version that PyTorch counts in tensors that have one."""

    __slots__ = ("reference", "value", "version", "written")

    def __init__(self, storage: Any, value: int) -> None:
        self.reference = StorageWeakRef(storage)
        self.value = value
        self.version = -1
        self.written = False


class Values:
    def __init__(self) -> None:
        self._storages: dict[int, Storage] = {}
        self._numbers = count(1)

    def storage(self, tensor: Any) -> Storage | None:
        """None: it has none that could be told apart."""
        if type(tensor) not in _PLAIN:
            return None
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None  # Sparse, or of a device without storages.
        known = self._storages.get(storage._cdata)
        if known is None:
            known = self._storages[storage._cdata] = Storage(storage, next(self._numbers))
        if not tensor.is_inference():
            version = tensor._version
            if version > known.version:
                # PyTorch counts a write after we have seen it; one that we have not seen changes the value, too.
                if known.version >= 0 and not known.written:
                    known.value = next(self._numbers)
                known.version, known.written = version, False
        return known

    def write(self, storage: Storage) -> None:
        storage.value = next(self._numbers)
        storage.written = True
