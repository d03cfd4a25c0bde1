"""Planted: a recommender copies each of its features to the GPU by itself: 160 copies of 4 KiB a request.
Fix: the features lie in one pinned buffer and go over in one copy."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import mlp

EXPECT = "many-small-copies"


class SmallCopies(Workload):
    STEPS = 40

    def setup(self) -> None:
        count = self.size(160, 12)
        self.packed = self.pinned(torch.randint(0, 8192, (count, self.size(512, 8)), device="cpu"))
        self.features = [self.pinned(row.clone()) for row in self.packed]
        width = self.size(4096, 64)
        self.table = torch.randn(8192, 16, dtype=self.dtype)
        self.into = torch.nn.Linear(16 * count, width).to(self.dtype)
        self.model = mlp(self, layers=6)

    def infer(self, ids: torch.Tensor) -> None:
        rows = self.table[ids].transpose(0, 1).flatten(1)
        self.model(self.into(rows)).mean(-1).tolist()

    def planted(self) -> None:
        self.infer(torch.stack([feature.to(self.device, non_blocking=True) for feature in self.features]))

    def fixed(self) -> None:
        self.infer(self.packed.to(self.device, non_blocking=True))


if __name__ == "__main__":
    main(SmallCopies)
