"""Planted: timing code that was left in calls `torch.cuda.synchronize()` after every layer.
Fix: without it; the clock is read once at the end."""

from __future__ import annotations

import time

from frame import Workload, main
from parts import book, encoder, tokens

EXPECT = "sync-api"


class SyncEachLayer(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=8), tokens(self, batch=4)
        self.times: list[float] = []

    def infer(self, timed: bool) -> None:
        x = self.model.embedding(self.tokens)
        self.times.clear()
        for layer in self.model.layers:
            x = layer(x)
            if timed:
                self.wait()
                self.times.append(time.perf_counter())
            book(self.size(250, 10))
        self.model.head(x[:, -1]).argmax(-1).tolist()

    def planted(self) -> None:
        self.infer(timed=True)

    def fixed(self) -> None:
        self.infer(timed=False)


if __name__ == "__main__":
    main(SyncEachLayer)
