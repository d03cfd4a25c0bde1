"""Planted: eight threads prepare the images of a batch, and in each of them PyTorch starts a thread a core again, as it
does by default: eight times as many threads as cores, which wait for one another.
Fix: the threads of the pool share the cores, so each has a few."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import torch
from frame import Workload, main
from parts import vision

EXPECT = "cpu-oversubscribed"
WORKERS = 8


class Oversubscribed(Workload):
    STEPS = 400
    # Threads in the hundreds are looked at once a second.
    SECONDS = 3.0

    def setup(self) -> None:
        self.model = vision(self)
        shape = (self.size(32, 8), 3, self.size(256, 64), self.size(256, 64))
        self.images = torch.randint(0, 255, shape, device="cpu", dtype=torch.uint8)
        self.crop = self.size(224, 32)
        self.buffer = self.pinned(torch.empty(*shape[:2], self.crop, self.crop, device="cpu", dtype=self.dtype))
        self.cores = len(os.sched_getaffinity(0))

    def begin(self, fixed: bool) -> None:
        each = max(1, self.cores // WORKERS) if fixed else self.cores
        # The number of threads is a setting of each thread that starts them.
        self.pool = ThreadPoolExecutor(WORKERS, "prepare", torch.set_num_threads, (each,))

    def end(self, fixed: bool) -> None:
        self.pool.shutdown()

    def prepare(self, part: int) -> None:
        with torch.inference_mode():
            images = self.images[part::WORKERS, :, : self.crop, : self.crop].float()
            for _ in range(6):
                images = ((images - 127.0) / 128.0).clamp(-1.0, 1.0)
            self.buffer[part::WORKERS] = images.to(self.dtype)

    def planted(self) -> None:
        list(self.pool.map(self.prepare, range(WORKERS)))
        self.model(self.buffer.to(self.device, non_blocking=True)).argmax(-1).tolist()

    fixed = planted


if __name__ == "__main__":
    main(Oversubscribed)
