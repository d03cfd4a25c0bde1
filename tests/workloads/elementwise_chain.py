"""Planted: GELU written out as eight elementwise operations over a large tensor, each of which reads and writes all
of it: the step is bound by memory bandwidth.
Fix: the one fused kernel, `F.gelu(x, approximate="tanh")`."""

from __future__ import annotations

import math

import torch
from frame import Workload, main
from torch.nn import functional

EXPECT = "unfused-elementwise"
# That such a chain is bound by bandwidth, and that a known fusion is missing, say the same: read and write once.
ALSO = ("memory-bandwidth-bound", "known-fusion-missing")


def written_out(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class ElementwiseChain(Workload):
    STEPS = 50
    LAYERS = 6

    def setup(self) -> None:
        self.x = torch.randn(self.size(8192, 64), self.size(16384, 64), dtype=self.dtype)

    def planted(self) -> None:
        x = self.x
        for _ in range(self.LAYERS):
            x = written_out(x)
        x[0, :8].tolist()

    def fixed(self) -> None:
        x = self.x
        for _ in range(self.LAYERS):
            x = functional.gelu(x, approximate="tanh")
        x[0, :8].tolist()


if __name__ == "__main__":
    main(ElementwiseChain)
