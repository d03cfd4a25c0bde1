"""Planted: a compiled model gets an input of another length with every request, and each length is compiled anew.
Fix: inputs are padded to one length."""

from __future__ import annotations

import itertools

import torch
from frame import Workload, main
from parts import encoder

EXPECT = "compile-in-request"


class Recompile(Workload):
    STEPS = 14
    WARM = 2
    LONGEST = 2048

    def setup(self) -> None:
        # Without it PyTorch gives up after eight lengths and runs eagerly.
        torch._dynamo.config.recompile_limit = 512
        torch._dynamo.config.accumulated_recompile_limit = 4096
        torch._dynamo.config.automatic_dynamic_shapes = False
        # The compiler's own work is what is planted; the code it would make is not.
        self.model = torch.compile(encoder(self, width=1024), backend="eager", dynamic=False)
        self.tokens = torch.randint(0, 8192, (self.size(8, 2), self.LONGEST))
        self.lengths = itertools.count(self.size(512, 16))

    def planted(self) -> None:
        self.model(self.tokens[:, : next(self.lengths)].contiguous()).argmax(-1).tolist()

    def fixed(self) -> None:
        length = self.size(768, 64)
        self.model(self.tokens[:, :length].contiguous()).argmax(-1).tolist()


if __name__ == "__main__":
    main(Recompile)
