"""Keeps CUPTI's activity buffers as they come from a real GPU: runs small.py under the floor collector, which writes
them down unread. The decoder is tested on them (tests/traces/buffers). Writes to $OUT, else to ./gpu-results."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

from gpu import libcupti
from machine import ROOT, inferscope, require_gpu

KEPT = ("copies", "graphs")


def main() -> int:
    machine = require_gpu("keep_buffers")
    _, environ = inferscope()
    target = Path(os.environ.get("OUT") or "gpu-results")
    target.mkdir(exist_ok=True)
    for name in KEPT:
        raw = target / f"{name}.buffers"
        floor = {"CUDA_INJECTION64_PATH": str(ROOT / "dist" / "floor_cupti.so"), "FLOOR_CUPTI": libcupti()}
        workload = [sys.executable, str(ROOT / "tests" / "gpu" / "workloads" / "small.py"), name]
        subprocess.run(workload, env=environ | floor | {"FLOOR_KEEP": str(raw)}, check=True)
        packed = target / f"{name}.buffers.gz"
        packed.write_bytes(gzip.compress(raw.read_bytes(), mtime=0))
        raw.unlink()
        print(f"{packed}: {packed.stat().st_size} bytes, on {machine}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
