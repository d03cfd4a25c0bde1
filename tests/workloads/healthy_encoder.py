"""Planted: nothing. A wide encoder in bfloat16 over a full batch: nearly all of the step is large products, and the
result is read once, at the end."""

from __future__ import annotations

from frame import Workload, main
from parts import encoder, tokens

EXPECT = "healthy"


class HealthyEncoder(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=3, width=4096), tokens(self, batch=16)

    def planted(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()


if __name__ == "__main__":
    main(HealthyEncoder)
