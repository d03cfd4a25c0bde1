"""Planted: after every token all logits go to the host, which chooses the next token there.
Fix: the token is chosen on the GPU, and only it goes to the host, at the end."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import encoder, tokens

EXPECT = "logits-to-host-each-step"


class LogitsToHost(Workload):
    STEPS = 40
    TOKENS = 4

    def setup(self) -> None:
        self.model, self.start = encoder(self, layers=3), tokens(self, batch=32, length=64)
        self.head = torch.nn.Linear(256, self.size(50304, 512)).to(self.dtype)

    def decode(self, on_host: bool) -> None:
        window = self.start
        for _ in range(self.TOKENS):
            logits = self.head(self.model(window)).float()
            chosen = logits.cpu().argmax(-1).to(self.device) if on_host else logits.argmax(-1)
            window = torch.cat([window[:, 1:], chosen[:, None] % 8192], 1)
        window[:, -self.TOKENS :].tolist()

    def planted(self) -> None:
        self.decode(on_host=True)

    def fixed(self) -> None:
        self.decode(on_host=False)


if __name__ == "__main__":
    main(LogitsToHost)
