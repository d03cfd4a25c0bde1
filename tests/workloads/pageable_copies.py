"""Planted: every batch of images goes to the GPU from pageable memory, which copies at a fifth of the speed of pinned
memory and makes the host wait.
Fix: the batches lie in pinned memory."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import vision

EXPECT = "pageable-async-copy"


class PageableCopies(Workload):
    STEPS = 60

    def setup(self) -> None:
        self.model = vision(self)
        shape = (self.size(64, 2), 3, self.size(224, 32), self.size(224, 32))
        self.pageable = [torch.randn(shape, device="cpu") for _ in range(3)]
        self.locked = [self.pinned(images) for images in self.pageable]
        self.number = 0

    def infer(self, batches: list[torch.Tensor]) -> None:
        self.number += 1
        images = batches[self.number % len(batches)].to(self.device, non_blocking=True)
        self.model(images.to(self.dtype)).argmax(-1).tolist()

    def planted(self) -> None:
        self.infer(self.pageable)

    def fixed(self) -> None:
        self.infer(self.locked)


if __name__ == "__main__":
    main(PageableCopies)
