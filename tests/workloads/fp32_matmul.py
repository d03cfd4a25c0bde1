"""Planted: an FP32 model with TF32 switched off, which is PyTorch's default: its products do not use the tensor cores.
Fix: `torch.backends.cuda.matmul.allow_tf32 = True`."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import encoder, tokens

EXPECT = "tf32-off"
# The tensor cores are unused because TF32 is off: one fact, one fix.
ALSO = ("tensor-cores-unused",)


class Fp32Matmul(Workload):
    STEPS = 40

    def setup(self) -> None:
        self.dtype = torch.float32
        self.model, self.tokens = encoder(self, width=1024), tokens(self, batch=8)

    def begin(self, fixed: bool) -> None:
        torch.backends.cuda.matmul.allow_tf32 = fixed

    def planted(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()

    fixed = planted


if __name__ == "__main__":
    main(Fp32Matmul)
