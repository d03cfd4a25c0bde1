"""Planted: nothing. A large encoder in bfloat16 over a full batch, one read of the result at the end."""

from __future__ import annotations

from frame import Workload, main
from parts import encoder, tokens

EXPECT = "healthy"


class HealthyEncoder(Workload):
    STEPS = 50

    def setup(self) -> None:
        self.model, self.tokens = encoder(self, layers=6), tokens(self, batch=32)

    def planted(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()


if __name__ == "__main__":
    main(HealthyEncoder)
