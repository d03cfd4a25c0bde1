"""Planted: layers 4095 wide in bfloat16: rows are not aligned to 16 bytes, and the products fall back to slow kernels.
Fix: the width is padded to 4096."""

from __future__ import annotations

import torch
from frame import Workload, main
from torch import nn

EXPECT = "unaligned-matmul"


class Unaligned(Workload):
    STEPS = 40

    def setup(self) -> None:
        odd = self.size(4095, 63)
        self.odd, self.even = self.stack(odd), self.stack(odd + 1)
        self.x = torch.randn(self.size(8192, 8), odd, dtype=self.dtype)
        self.padded = nn.functional.pad(self.x, (0, 1))

    def stack(self, width: int) -> nn.Sequential:
        parts = [part for _ in range(8) for part in (nn.Linear(width, width), nn.ReLU())]
        return nn.Sequential(*parts).to(self.dtype).eval()

    def planted(self) -> None:
        self.odd(self.x)[0, :4].tolist()

    def fixed(self) -> None:
        self.even(self.padded)[0, :4].tolist()


if __name__ == "__main__":
    main(Unaligned)
