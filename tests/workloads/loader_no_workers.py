"""Planted: a `DataLoader` without workers: every image is decoded on the serving thread while the GPU waits for the
batch.
Fix: eight workers, pinned batches."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from frame import Workload, main
from parts import vision
from torch.utils.data import DataLoader, Dataset

EXPECT = "single-threaded-loader"
# Both say that the step waits for its input. That it is made before the first kernel is where this shows.
ALSO = ("input-pipeline",)


class Images(Dataset[torch.Tensor]):
    def __init__(self, side: int) -> None:
        self.side = side

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> torch.Tensor:
        """As decoding does: some Python, then line by line over all pixels."""
        lines = [line * 31 % 256 for line in range(6 * self.side)]
        row = torch.tensor(lines[: self.side], dtype=torch.uint8)
        return torch.stack([row.roll(line) for line in range(self.side)]).repeat(3, 1, 1)


def views(work: Workload, images: torch.Tensor, count: int) -> torch.Tensor:
    """Several views of every image, as test-time augmentation has them, made on the device."""
    # Both in one call would convert on the host.
    images = images.to(work.device, non_blocking=True).to(work.dtype)
    return images.sub_(127.0).div_(128.0).repeat(count, 1, 1, 1)


class LoaderNoWorkers(Workload):
    STEPS = 40
    WARM = 3

    def setup(self) -> None:
        self.model, self.views = vision(self, layers=12), self.size(4, 1)
        # Decoding is one thread's work each, so that a worker is worth one core.
        torch.set_num_threads(1)
        self.images, self.batch = Images(self.size(224, 32)), self.size(16, 2)
        self.batches: dict[bool, Iterator[torch.Tensor]] = {}

    def loader(self, fixed: bool) -> Iterator[torch.Tensor]:
        if fixed:
            return iter(DataLoader(self.images, self.batch, num_workers=self.size(8, 2), pin_memory=self.cuda))
        return iter(DataLoader(self.images, self.batch))

    def infer(self, fixed: bool) -> None:
        with torch.device("cpu"):
            if fixed not in self.batches:
                self.batches[fixed] = self.loader(fixed)
            images = next(self.batches[fixed])
        self.model(views(self, images, self.views)).argmax(-1).tolist()

    def planted(self) -> None:
        self.infer(fixed=False)

    def fixed(self) -> None:
        self.infer(fixed=True)


if __name__ == "__main__":
    main(LoaderNoWorkers)
