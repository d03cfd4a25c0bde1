"""Planted: a small decoder runs one token at a time in eager mode; a kernel runs for some microseconds and takes
longer to launch.
Fix: the forward pass is captured as a CUDA graph and replayed."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import Encoder

EXPECT = "launch-bound"


class GraphDecode(Workload):
    STEPS = 40

    def setup(self) -> None:
        self.model = Encoder(self.size(512, 64), self.size(6, 2), 4, causal=True).to(self.dtype).eval()
        self.tokens = torch.randint(0, 8192, (1, 16))
        self.graph: torch.cuda.CUDAGraph | None = None

    def capture(self) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.model(self.tokens)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.out = self.model(self.tokens).argmax(-1)

    def planted(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()

    def fixed(self) -> None:
        if not self.cuda:  # Where there are no graphs, only that the program runs can be seen.
            return self.planted()
        if self.graph is None:
            self.capture()
        self.graph.replay()
        self.out.tolist()
        return None


if __name__ == "__main__":
    main(GraphDecode)
