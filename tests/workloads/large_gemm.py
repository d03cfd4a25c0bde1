"""Planted: nothing but large matrix products in bfloat16, near what the device can do: it is bound by compute.
Fix: half the arithmetic time by FP8 weights and activations."""

from __future__ import annotations

import torch
from frame import Workload, main

EXPECT = "compute-bound"


class LargeGemm(Workload):
    STEPS = 40
    LAYERS = 6

    def setup(self) -> None:
        width = self.size(8192, 64)
        self.x = torch.randn(width, width, dtype=self.dtype)
        self.weights = [torch.randn(width, width, dtype=self.dtype) for _ in range(self.LAYERS)]
        self.one = torch.ones((), dtype=torch.float32)
        if not self.small:
            self.x8 = self.x.to(torch.float8_e4m3fn)
            self.weights8 = [weight.to(torch.float8_e4m3fn) for weight in self.weights]

    def planted(self) -> None:
        sums = [torch.mm(self.x, weight.t())[0, 0] for weight in self.weights]
        torch.stack(sums).tolist()

    def fixed(self) -> None:
        if self.small:  # FP8 is for the device.
            return self.planted()
        sums = [
            torch._scaled_mm(self.x8, weight.t(), scale_a=self.one, scale_b=self.one, out_dtype=self.dtype)[0, 0]
            for weight in self.weights8
        ]
        torch.stack(sums).tolist()
        return None


if __name__ == "__main__":
    main(LargeGemm)
