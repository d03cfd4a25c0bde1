"""Planted: two branches run on two streams, and one of them straggles: its softmax has a few very long rows, one
block each, so that a dozen of the GPU's multiprocessors work while the join waits for them.
Fix: the same softmax in two stages, which all multiprocessors share."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import encoder, tokens

EXPECT = "low-occupancy"
# Each of them names the kernel that the join waits for, and why: a grid too small to fill the device, far below its
# roof.
ALSO = ("below-roofline", "kernel-hotspot")


class StragglingStream(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=3), tokens(self, batch=4)
        self.rows = torch.randn(12, self.size(1 << 24, 1 << 10))
        self.side = torch.cuda.Stream() if self.cuda else None

    def branches(self, staged: bool) -> None:
        if self.side is None:
            weights = self.softmax(staged)
        else:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                weights = self.softmax(staged)
        out = self.model(self.tokens)
        if self.side is not None:
            torch.cuda.current_stream().wait_stream(self.side)
        (out.amax() + weights[0, 0]).tolist()

    def softmax(self, staged: bool) -> torch.Tensor:
        if not staged:
            return torch.softmax(self.rows, -1)
        parts = self.rows.view(12, 1024, -1)
        most = parts.amax(-1).amax(-1)[:, None, None]
        raised = torch.exp(parts - most)
        return (raised / raised.sum(-1).sum(-1)[:, None, None]).flatten(1)

    def planted(self) -> None:
        self.branches(staged=False)

    def fixed(self) -> None:
        self.branches(staged=True)


if __name__ == "__main__":
    main(StragglingStream)
