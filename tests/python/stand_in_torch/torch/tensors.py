"""Tensors that have a storage of so many bytes, and nothing in it."""

import itertools

_next = itertools.count(1 << 20, 1 << 30)


class UntypedStorage:
    def __init__(self, size, device):
        self._size = size
        self._address = next(_next)
        self.device = device

    def nbytes(self):
        return self._size

    def data_ptr(self):
        return self._address


class Tensor:
    def __init__(self, size, device="cpu", storage=None):
        self._storage = storage or UntypedStorage(size, device)

    def untyped_storage(self):
        return self._storage

    def view(self):
        return Tensor(0, storage=self._storage)
