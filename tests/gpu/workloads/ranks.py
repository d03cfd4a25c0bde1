"""Starts two ranks as torchrun does (a process each, told by the environment who they are) that share one GPU. Each
launches a known number of kernels; the printed JSON says how many."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def rank(number: int) -> None:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.zeros(1024, device=device)
    for _ in range(199 + number):
        x.add_(1)
    assert x[0].item() == 199 + number


def main() -> None:
    if "RANK" in os.environ:
        return rank(int(os.environ["RANK"]))
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ | {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": "2"},
        )
        for number in (1, 2)
    ]
    codes = [process.wait() for process in ranks]
    print(json.dumps({"pids": [process.pid for process in ranks], "additions": [200, 201], "codes": codes}), flush=True)
    sys.exit(max(codes))


main()
