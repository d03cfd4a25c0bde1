"""Planted: nothing. A model captured as a CUDA graph, replayed once a step, with kernels long enough to fill the
device."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import encoder, tokens

EXPECT = "healthy"


class HealthyGraph(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=2, width=4096), tokens(self, batch=16)

    def begin(self, fixed: bool) -> None:
        if not self.cuda:
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.model(self.tokens)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = self.model(self.tokens).argmax(-1)

    def planted(self) -> None:
        if self.cuda:
            self.graph.replay()
        else:
            self.out = self.model(self.tokens).argmax(-1)
        self.out.tolist()


if __name__ == "__main__":
    main(HealthyGraph)
