"""Planted: a mixture of experts goes through its experts in a Python loop, four tiny kernels each, and launching
takes far longer than running.
Fix: all experts in one batched product."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import mlp

EXPECT = "launch-bound"
# The loop that launches the tiny kernels is the same fault, seen from the Python side, and has the same fix.
ALSO = ("python-loop-over-tensors",)


class TinyKernels(Workload):
    STEPS = 25
    EXPERTS = 48

    def setup(self) -> None:
        width = self.size(256, 16)
        self.weights = torch.randn(self.EXPERTS, width, width, dtype=self.dtype)
        self.biases = torch.randn(self.EXPERTS, 1, width, dtype=self.dtype)
        self.inputs = torch.randn(self.EXPERTS, self.size(16, 2), width, dtype=self.dtype)
        self.model = mlp(self, width=2048, layers=2)
        self.hidden = torch.randn(self.size(2048, 4), self.size(2048, 64), dtype=self.dtype)

    def planted(self) -> None:
        self.model(self.hidden)
        mixed = [
            torch.relu(self.inputs[number] @ self.weights[number] + self.biases[number]).sum()
            for number in range(self.EXPERTS)
        ]
        torch.stack(mixed).tolist()

    def fixed(self) -> None:
        self.model(self.hidden)
        torch.relu(torch.baddbmm(self.biases, self.inputs, self.weights)).sum((1, 2)).tolist()


if __name__ == "__main__":
    main(TinyKernels)
