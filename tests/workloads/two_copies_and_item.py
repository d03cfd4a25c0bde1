"""Planted, two: batches from pageable memory, which cost the most, and an `.item()` after every layer.
Fix: pinned batches; the second bottleneck stays, so that what is measured is the first one's."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import book, vision

EXPECT = "pageable-async-copy"
SECOND = "implicit-sync"


class TwoCopiesAndItem(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model = vision(self, layers=6)
        shape = (self.size(96, 2), 3, self.size(224, 32), self.size(224, 32))
        self.pageable = torch.randn(shape, device="cpu")
        self.locked = self.pinned(self.pageable)

    def infer(self, images: torch.Tensor) -> None:
        x = images.to(self.device, non_blocking=True).to(self.dtype)
        x = self.model.patches(x).flatten(2).transpose(1, 2)
        for layer in self.model.layers:
            x = layer(x)
            if x.float().amax().item() > 1e9:
                break
            book(self.size(250, 10))
        self.model.head(x.mean(1)).argmax(-1).tolist()

    def planted(self) -> None:
        self.infer(self.pageable)

    def fixed(self) -> None:
        self.infer(self.locked)


if __name__ == "__main__":
    main(TwoCopiesAndItem)
