"""What a block of PyTorch's GPU allocator costs under InferScope, from where PyTorch calls us to its own function:
stand-ins for its two libraries (tests/fake_torch) and for the driver (tests/fake_cupti), so that it needs no GPU. The
best of many rounds, less the same without a recording. Blocks of 512 bytes, of which about one in a thousand has its
stack read (`recorded`), and of 2 MiB, of which each has (`stack`): from 20 frames of Python that were seen before.

The last line is JSON for benches/run.py."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "fake_torch"), str(ROOT / "tests" / "fake_cupti")]

PROGRAM = """
import ctypes, json, sys, time
sys.path.insert(0, sys.argv[1])
import torch
many = torch.cuda.c10_cuda_many_of
many.restype, many.argtypes = ctypes.c_double, (ctypes.c_long, ctypes.c_long)
SMALL, LARGE, FRAMES = 512, 2 << 20, 20
def nested(size, more):
    return nested(size, more - 1) if more > 2 else many(5000, size)
many(1000, SMALL)
plain = min(many(10000, SMALL) for _ in range(int(sys.argv[2])))
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
recorded, large = [], []
for _ in range(int(sys.argv[2])):
    recorded.append(nested(SMALL, FRAMES))
    # The ring is read meanwhile, as it is by a program that does something else, too.
    time.sleep(0.05)
    large.append(nested(LARGE, FRAMES))
    time.sleep(0.05)
# Of two events, one is the block that has the stack.
print(json.dumps({"plain": plain, "recorded": min(recorded), "recorded_median": sorted(recorded)[len(recorded) // 2],
    "stack": 2 * (min(large) - min(recorded))}))
"""


def main() -> None:
    import build as fake_cupti
    import fake_torch

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=60)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        fake_torch.module(fake_torch.build(folder / "torch"))
        fake_cupti.build_driver(folder / "driver")
        (folder / "script.txt").write_text("")
        (folder / "program.py").write_text(PROGRAM)
        extra = {"LD_LIBRARY_PATH": str(folder / "driver"), "FAKE_CUPTI_SCRIPT": str(folder / "script.txt")}
        command = [
            Path(sys.executable).with_name("inferscope"),
            "run",
            "--no-stacks",
            "--memory-events",
            "gpu",
            "--output",
            folder / "trace",
            "--",
        ]
        command += [sys.executable, folder / "program.py", folder / "torch", str(chosen.rounds)]
        done = subprocess.run(command, env=os.environ | extra, stdout=subprocess.PIPE, text=True, check=True)
    ns = json.loads(done.stdout.strip().splitlines()[-1])
    ns = {name: round(value, 1) for name, value in ns.items()}
    print(json.dumps({"ns": ns, "added_ns": round(ns["recorded"] - ns["plain"], 1)}))


if __name__ == "__main__":
    main()
