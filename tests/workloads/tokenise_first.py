"""Planted: every request is tokenised in plain Python before the first kernel is launched, while the GPU waits.
Fix: prompts that were seen before are taken from a cache of tokens."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import encoder, text, tokenise

EXPECT = "preprocess-before-first-kernel"


class TokeniseFirst(Workload):
    STEPS = 60

    def setup(self) -> None:
        self.model, self.text = encoder(self), text(self, 2400)
        self.shape = (self.size(8, 2), self.size(512, 16))
        self.cache: dict[str, list[int]] = {}

    def forward(self, ids: list[int]) -> None:
        count = self.shape[0] * self.shape[1]
        ids = (ids * (count // len(ids) + 1))[:count]
        batch = self.pinned(torch.tensor(ids, device="cpu").view(self.shape)).to(self.device, non_blocking=True)
        self.model(batch).argmax(-1).tolist()

    def planted(self) -> None:
        self.forward(tokenise(self.text))

    def fixed(self) -> None:
        if self.text not in self.cache:
            self.cache[self.text] = tokenise(self.text)
        self.forward(self.cache[self.text])


if __name__ == "__main__":
    main(TokeniseFirst)
