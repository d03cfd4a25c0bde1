"""Planted: the server calls `gc.collect()` after every request "to free memory", and the collector walks everything
that is alive.
Fix: without it."""

from __future__ import annotations

import gc

from frame import Workload, main
from parts import book, encoder, tokens

EXPECT = "gc-pauses"


class GcInLoop(Workload):
    STEPS = 40

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=6), tokens(self, batch=16)
        self.sessions = [book(10) for _ in range(self.size(3000, 300))]

    def planted(self) -> None:
        self.fixed()
        gc.collect()

    def fixed(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()


if __name__ == "__main__":
    main(GcInLoop)
