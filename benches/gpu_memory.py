"""What recording adds to the memory of a program that launches on and on, for each launch: nothing, the floor collector as
it is and with CUPTI's attributes set otherwise, and `inferscope run`. CUPTI keeps the times of kernels in buffers of its
own, on the device or pinned on the host, which it is said to use again (32 bytes for each kernel)."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu import HERE, libcupti, require_floor
from machine import ROOT, inferscope, require_gpu
from results import Results

# The attributes, by the numbers of CUpti_ActivityAttribute: 0 bytes of a device buffer, 2 how many of them at most,
# 8 pinned on the host, 9 buffers for each thread.
FLOORS: dict[str, dict[str, str]] = {
    "floor": {},
    "floor-flush": {"FLOOR_FLUSH": "1000"},
    "floor-forced": {"FLOOR_FLUSH": "1000", "FLOOR_FORCED": "1"},
    "floor-calls": {"FLOOR_KINDS": "0"},
    "floor-kernels": {"FLOOR_CALLS": "0"},
    "floor-clock": {"FLOOR_CLOCK": "0"},
    "floor-pool": {"FLOOR_ATTRIBUTE": "2=8=8"},
    "floor-small": {"FLOOR_ATTRIBUTE": "0=320000=8,2=25=8"},
    "floor-pinned": {"FLOOR_ATTRIBUTE": "8=1=1"},
    "floor-threads": {"FLOOR_ATTRIBUTE": "9=0=1"},
    "floor-runtime": {"FLOOR_MORE": "5"},
    "floor-turns": {},
}
OURS = {"default": [], "everything": ["--overhead-budget", "none"]}
VARIANTS = ("plain", *FLOORS, *OURS)


def start(variant: str, seconds: float, folder: Path) -> subprocess.Popen[str]:
    command, environ = inferscope()
    words = [sys.executable, str(HERE / "workloads" / "gpu_memory.py"), str(seconds)]
    if variant in FLOORS:
        floor = {"CUDA_INJECTION64_PATH": str(ROOT / "dist" / "floor_cupti.so"), "FLOOR_CUPTI": libcupti()}
        environ = environ | floor | FLOORS[variant] | {"FLOOR_COUNT": str(folder / f"{variant}.count")}
        environ |= {"FLOOR_CYCLE": str(folder / "turns")} if variant == "floor-turns" else {}
    elif variant in OURS:
        recorded = ["run", "--quiet", "--output", str(folder / variant), *OURS[variant]]
        words = [str(command), *recorded, "--", *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


def on_device() -> dict[int, int]:
    """Mebibytes on the GPU by process, where the driver tells."""
    words = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    pairs = (line.split(",") for line in said.splitlines() if line.count(",") == 1)
    return {int(pid): int(used) for pid, used in pairs if used.strip().isdigit()}


def told(results: Results, variant: str, said: dict[str, Any], folder: Path) -> None:
    counted = folder / f"{variant}.count"
    kernels, timeless = map(int, counted.read_text().split()) if counted.exists() else (None, None)
    said |= {"kernels": kernels, "timeless": timeless}
    results.document["variants"][variant] = said
    where = ", ".join(f"{name} {grown / 1e6:+.1f}" for name, grown in said["where"].items())
    results.say(
        f"{variant:14} {said['launched']:9} launches, {said['grown'] / 1e6:+8.1f} MB,"
        f" {said['grown'] / max(said['launched'], 1):6.1f} bytes a launch; {kernels} recorded, {timeless} without a time; {where}"
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--variants", default=",".join(VARIANTS))
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("--at-once", type=int, default=4, help="processes side by side: nothing is timed")
    chosen = options.parse_args()
    results = Results("gpu-memory", require_gpu("gpu-memory"), False)
    require_floor()
    results.document["variants"] = {}
    names = chosen.variants.split(",")
    for at in range(0, len(names), chosen.at_once):
        with tempfile.TemporaryDirectory(prefix="inferscope-gpu-memory-") as name:
            folder = Path(name)
            running = {variant: start(variant, chosen.seconds, folder) for variant in names[at : at + chosen.at_once]}
            samples = []
            while any(process.poll() is None for process in running.values()):
                samples.append(sum(on_device().values()))
                time.sleep(3)
            for variant, process in running.items():
                assert process.stdout is not None
                lines = process.stdout.read().splitlines()
                if process.returncode or not lines:
                    results.say(f"{variant:14} ended with {process.returncode}")
                    continue
                told(results, variant, json.loads(lines[-1]), folder)
            results.say(f"               on the device, of all of them, every 3 s: {samples} MiB")
        results.save()
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
