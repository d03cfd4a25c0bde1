"""Planted: nothing. Images are decoded by four workers ahead of time, and the model takes longer for a batch than
they do."""

from __future__ import annotations

import torch
from frame import Workload, main
from loader_no_workers import Images, views
from parts import vision
from torch.utils.data import DataLoader

EXPECT = "healthy"


class HealthyLoader(Workload):
    STEPS = 30
    WARM = 6

    def setup(self) -> None:
        self.model = vision(self, layers=2, width=4096)
        self.views = self.size(4, 1)
        images = Images(self.size(224, 32))
        loader = DataLoader(images, self.size(16, 2), num_workers=self.size(4, 2), pin_memory=self.cuda)
        with torch.device("cpu"):
            self.batches = iter(loader)

    def planted(self) -> None:
        self.model(views(self, next(self.batches), self.views)).argmax(-1).tolist()


if __name__ == "__main__":
    main(HealthyLoader)
