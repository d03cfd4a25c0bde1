"""Planted: eight requests are decoded one after the other, and for each of them all weights are read from memory:
matrix times vector, bound by memory bandwidth.
Fix: the requests as one batch, which reads the weights once."""

from __future__ import annotations

import torch
from frame import Workload, main
from torch import nn

EXPECT = "memory-bandwidth-bound"
# The same bound, said of decoding.
ALSO = ("decode-bandwidth",)


class DecodeBandwidth(Workload):
    STEPS = 40
    REQUESTS = 8

    def setup(self) -> None:
        width = self.size(8192, 64)
        layers = [nn.Linear(width, width, bias=False) for _ in range(self.size(10, 2))]
        self.model = nn.Sequential(*layers).to(self.dtype).eval()
        self.requests = torch.randn(self.REQUESTS, width, dtype=self.dtype)

    def planted(self) -> None:
        torch.stack([self.model(request) for request in self.requests])[:, 0].tolist()

    def fixed(self) -> None:
        self.model(self.requests)[:, 0].tolist()


if __name__ == "__main__":
    main(DecodeBandwidth)
