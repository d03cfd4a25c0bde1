"""Planted: images are prepared on the CPU with eight times as many threads as there are cores, as a number of
threads copied from a larger machine does it.
Fix: as many threads as half the cores."""

from __future__ import annotations

import os

import torch
from frame import Workload, main
from parts import vision

EXPECT = "cpu-oversubscribed"


class Oversubscribed(Workload):
    STEPS = 30

    def setup(self) -> None:
        self.model = vision(self)
        self.images = torch.randint(0, 255, (self.size(64, 8), 3, self.size(256, 64), self.size(256, 64)), device="cpu")
        self.crop = self.size(224, 32)
        self.cores = len(os.sched_getaffinity(0))

    def begin(self, fixed: bool) -> None:
        torch.set_num_threads(max(1, self.cores // 2) if fixed else 8 * self.cores)

    def planted(self) -> None:
        images = self.images[:, :, : self.crop, : self.crop].float()
        for _ in range(6):
            images = ((images - 127.0) / 128.0).clamp(-1.0, 1.0)
        self.model(images.to(self.device, self.dtype)).argmax(-1).tolist()

    fixed = planted


if __name__ == "__main__":
    main(Oversubscribed)
