"""Planted: a detector picks the good boxes of every level with a boolean mask; the size of the result must be known on
the host, so `nonzero` waits for the GPU at every level.
Fix: the best K boxes of a level, a size that is known before."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import book, mlp

EXPECT = "implicit-sync"


class NonzeroMasks(Workload):
    STEPS = 50
    LEVELS = 6

    def setup(self) -> None:
        self.model = mlp(self, width=4096, layers=3)
        self.features = torch.randn(self.size(4096, 64), self.size(4096, 64), dtype=self.dtype)
        self.score = torch.randn(self.size(4096, 64), dtype=self.dtype)
        self.keep = self.size(512, 8)

    def detect(self, masked: bool) -> None:
        found = []
        for _ in range(self.LEVELS):
            boxes = self.model(self.features)
            scores = boxes @ self.score
            chosen = boxes[scores > 0] if masked else boxes[scores.topk(self.keep).indices]
            found.append(chosen[:, :4].float().amax(0))
            book(self.size(250, 10))
        torch.stack(found).tolist()

    def planted(self) -> None:
        self.detect(masked=True)

    def fixed(self) -> None:
        self.detect(masked=False)


if __name__ == "__main__":
    main(NonzeroMasks)
