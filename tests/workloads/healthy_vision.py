"""Planted: nothing. A vision transformer whose next batch comes from pinned memory on a stream of its own while the
current one is computed."""

from __future__ import annotations

import torch
from frame import Workload, main
from parts import vision

EXPECT = "healthy"


class HealthyVision(Workload):
    STEPS = 40

    def setup(self) -> None:
        self.model = vision(self, layers=3, width=4096)
        shape = (self.size(48, 2), 3, self.size(224, 32), self.size(224, 32))
        self.host = [self.pinned(torch.randn(shape, device="cpu").to(self.dtype)) for _ in range(2)]
        self.device_side = [images.to(self.device) for images in self.host]
        self.copies = torch.cuda.Stream() if self.cuda else None
        self.number = 0

    def planted(self) -> None:
        current, following = self.number % 2, (self.number + 1) % 2
        self.number += 1
        if self.copies is not None:
            with torch.cuda.stream(self.copies):
                self.device_side[following].copy_(self.host[following], non_blocking=True)
        chosen = self.model(self.device_side[current]).argmax(-1)
        if self.copies is not None:
            torch.cuda.current_stream().wait_stream(self.copies)
        chosen.tolist()


if __name__ == "__main__":
    main(HealthyVision)
