"""Planted: a long input goes through the model in parts, and every part is copied from pinned memory by a copy that
waits: the host begins to launch again only when the GPU has run dry.
Fix: `non_blocking=True`."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import book, mlp

EXPECT = "sync-memcpy"
# PyTorch has no synchronous copy of its own: `.to(device)` is an asynchronous one and `cudaStreamSynchronize`. That
# call at that line is the same wait, with the same fix.
ALSO = ("sync-api",)


class SyncCopies(Workload):
    STEPS = 50
    PARTS = 8

    def setup(self) -> None:
        self.model = mlp(self, width=4096, layers=3)
        shape = (self.size(3072, 16), self.size(512, 16))
        self.into = torch.nn.Linear(shape[1], self.size(4096, 64)).to(self.dtype)
        self.parts = [self.pinned(torch.randn(shape, device="cpu").to(self.dtype)) for _ in range(self.PARTS)]

    def infer(self, blocking: bool) -> None:
        sums = []
        for part in self.parts:
            x = part.to(self.device, non_blocking=not blocking)
            sums.append(self.model(self.into(x)).mean())
            book(self.size(250, 10))
        torch.stack(sums).tolist()

    def planted(self) -> None:
        self.infer(blocking=True)

    def fixed(self) -> None:
        self.infer(blocking=False)


if __name__ == "__main__":
    main(SyncCopies)
