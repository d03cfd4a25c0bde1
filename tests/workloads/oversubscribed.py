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
        shape = (self.size(32, 8), 3, self.size(256, 64), self.size(256, 64))
        self.images = torch.randint(0, 255, shape, device="cpu", dtype=torch.uint8)
        self.crop = self.size(224, 32)
        self.buffer = self.pinned(torch.empty(*shape[:2], self.crop, self.crop, device="cpu", dtype=self.dtype))
        self.cores = len(os.sched_getaffinity(0))

    def begin(self, fixed: bool) -> None:
        torch.set_num_threads(max(1, self.cores // 2) if fixed else 8 * self.cores)

    def planted(self) -> None:
        images = self.images[:, :, : self.crop, : self.crop].float()
        for _ in range(6):
            images = ((images - 127.0) / 128.0).clamp(-1.0, 1.0)
        self.buffer.copy_(images)
        self.model(self.buffer.to(self.device, non_blocking=True)).argmax(-1).tolist()

    fixed = planted


if __name__ == "__main__":
    main(Oversubscribed)
