"""Planted: attention over long inputs runs on the math backend, which writes the whole matrix of scores to memory.
Fix: the flash backend."""

from __future__ import annotations

from contextlib import AbstractContextManager

from frame import Workload, main
from parts import encoder, tokens
from torch.nn.attention import SDPBackend, sdpa_kernel

EXPECT = "attention-fallback"


class MathAttention(Workload):
    STEPS = 40

    def setup(self) -> None:
        self.model, self.tokens = encoder(self), tokens(self, batch=4, length=2048)

    def infer(self, backend: AbstractContextManager[None]) -> None:
        with backend:
            self.model(self.tokens).argmax(-1).tolist()

    def planted(self) -> None:
        self.infer(sdpa_kernel(SDPBackend.MATH))

    def fixed(self) -> None:
        self.infer(
            sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH] if self.small else SDPBackend.FLASH_ATTENTION)
        )


if __name__ == "__main__":
    main(MathAttention)
