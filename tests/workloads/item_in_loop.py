"""Planted: an early-exit model asks after every layer with `.item()` whether it is sure enough, and the GPU runs dry
while the host finds out.
Fix: the answer is read once, at the end."""

from __future__ import annotations

from frame import Workload, main
from parts import book, encoder, tokens

EXPECT = "implicit-sync"


class ItemInLoop(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=8), tokens(self, batch=4)

    def infer(self, ask: bool) -> None:
        x = self.model.embedding(self.tokens)
        for layer in self.model.layers:
            x = layer(x)
            sure = x[:, -1].float().amax()
            if ask and sure.item() > 1e9:
                break
            book(self.size(250, 10))
        self.model.head(x[:, -1]).argmax(-1).tolist()

    def planted(self) -> None:
        self.infer(ask=True)

    def fixed(self) -> None:
        self.infer(ask=False)


if __name__ == "__main__":
    main(ItemInLoop)
