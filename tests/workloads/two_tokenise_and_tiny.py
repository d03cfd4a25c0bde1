"""Planted, two: a prompt tokenised in plain Python before the first kernel, which costs the most, and then a
decoder of tiny kernels.
Fix: tokens from a cache; the second bottleneck stays, so that what is measured is the first one's."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import Encoder, text, tokenise

EXPECT = "preprocess-before-first-kernel"
SECOND = "launch-bound"


class TwoTokeniseAndTiny(Workload):
    STEPS = 35

    def setup(self) -> None:
        self.model = Encoder(self.size(512, 64), self.size(8, 2), 4, causal=True).to(self.dtype).eval()
        self.text = text(self, 1600)
        self.cached = tokenise(self.text)

    def forward(self, ids: list[int]) -> None:
        batch = self.pinned(torch.tensor(ids[:16], device="cpu")[None]).to(self.device, non_blocking=True)
        self.model(batch).argmax(-1).tolist()

    def planted(self) -> None:
        self.forward(tokenise(self.text))

    def fixed(self) -> None:
        self.forward(self.cached)


if __name__ == "__main__":
    main(TwoTokeniseAndTiny)
