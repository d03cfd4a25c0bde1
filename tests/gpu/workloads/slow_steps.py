"""Decodes for some seconds, again and again, each time as one step: slow_steps.py <steps> <seconds of each>."""

from __future__ import annotations

import sys
import time

import torch

sys.path.insert(0, __file__.rpartition("/")[0])

from decode import DEVICE
from inferscope import step
from model import Decoder


def main(steps: int, seconds: float) -> None:
    torch.manual_seed(0)
    model, tokens = Decoder().to(DEVICE).eval(), torch.randint(0, 500, (1, 32), device=DEVICE)
    with torch.inference_mode():
        for _ in range(steps):
            with step("request"):
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    model(tokens)[:, -1].argmax(-1).item()


main(int(sys.argv[1]), float(sys.argv[2]))
