"""How much slower models get, as exactly as a machine that changes its pace allows: a few processes of each kind
(plain, the floor collector, `inferscope run`, torch.profiler) stay loaded, and short bursts of all of them take turns,
in another order each round. A burst is held against the plain ones of its own round; a process has its median."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu import HERE, MODELS, libcupti, require_floor
from gpu_quick import MORE, OPTIONS
from machine import ROOT, inferscope, require_gpu
from results import Results

VARIANTS = ("plain", "floor", "default")
# The floor taken apart: only its callbacks, only the kernels' times, and what is left once it has stopped.
FLOORS: dict[str, dict[str, str]] = {
    "floor": {},
    "floor-calls": {"FLOOR_KINDS": "0"},
    "floor-kernels": {"FLOOR_CALLS": "0"},
    "floor-beats": {"FLOOR_KINDS": "0", "FLOOR_CALLS": "165"},
    "floor-stopped": {"FLOOR_STOP_AFTER": "3"},
    "floor-finalized": {"FLOOR_STOP_AFTER": "3", "FLOOR_FINALIZE": "1"},
    "floor-flush": {"FLOOR_FLUSH": "1000"},
    # Attributes of CUPTI: its device buffers in the host's memory, and larger ones.
    "floor-pinned": {"FLOOR_ATTRIBUTE": "8=1=1"},
    "floor-unpinned": {"FLOOR_ATTRIBUTE": "8=0=1"},
    "floor-large": {"FLOOR_ATTRIBUTE": "0=33554432=8"},
    "floor-semaphores": {"FLOOR_ATTRIBUTE": "3=262144=8"},
    **{name: {"FLOOR_MORE": kind} for name, kind in MORE.items()},
}


class Process:
    """One model, loaded, waiting for its turn."""

    def __init__(self, variant: str, model: str, command: Path, environ: dict[str, str], folder: Path) -> None:
        words = [sys.executable, str(HERE / "workloads" / "gpu_bursts.py"), model]
        kind, _, apart = variant.partition("+")
        if apart:
            # The workload has the first half of the cores, the recorder the others.
            environ = environ | {"BURST_CORES": str((os.cpu_count() or 2) // 2)}
        if kind in FLOORS:
            floor = {"CUDA_INJECTION64_PATH": str(ROOT / "dist" / "floor_cupti.so"), "FLOOR_CUPTI": libcupti()}
            environ = environ | floor | FLOORS[kind]
        elif kind in OPTIONS:
            recorded = ["run", "--quiet", "--output", str(folder), *OPTIONS[kind]]
            words = [str(command), *recorded, "--", *words]
            if apart:
                cores = os.cpu_count() or 2
                words = ["taskset", "-c", f"{cores // 2}-{cores - 1}", *words]
        self.variant = variant
        self.mode = variant if variant.startswith("torch-") else "plain"
        self.ratios: list[float] = []
        self.cpu = 0.0
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(("ready", "{")):
                return line
        raise SystemExit(f"a process of {self.variant} ended with {self.process.wait()}")

    def burst(self, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds} {self.mode}\n")
        self.process.stdin.flush()
        said: dict[str, Any] = json.loads(self.line())
        return said

    def cpu_s(self) -> float:
        """What the first process of it, the recorder where there is one, has had of processors so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(timeout=120)


def rounds(processes: list[Process], count: int, seconds: float) -> dict[str, list[float]]:
    """The bursts of each variant in microseconds a step; ratios go to the processes."""
    order = random.Random(1)
    seen: dict[str, list[float]] = {}
    for _ in range(count):
        order.shuffle(processes)
        said = [(process, process.burst(seconds)["median_ns"]) for process in processes]
        plain = statistics.median(took for process, took in said if process.variant == "plain")
        for process, took in said:
            process.ratios.append(took / plain)
            seen.setdefault(process.variant, []).append(took / 1000)
    return seen


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", default=",".join(MODELS))
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"also {', '.join([*FLOORS, *OPTIONS])}")
    options.add_argument("--processes", type=int, default=3, help="of each variant")
    options.add_argument("--rounds", type=int, default=8)
    options.add_argument("--seconds", type=float, default=0.3, help="of one burst")
    chosen = options.parse_args()
    results = Results("gpu-bursts", require_gpu("gpu-bursts"), False)
    command, environ = inferscope()
    require_floor()
    results.document["ratios"] = {}
    for model in chosen.models.split(","):
        with tempfile.TemporaryDirectory(prefix="inferscope-gpu-bursts-") as name:
            kinds = [variant for _ in range(chosen.processes) for variant in chosen.variants.split(",")]
            processes = [
                Process(kind, model, command, environ, Path(name) / f"{kind}-{number}")
                for number, kind in enumerate(kinds)
            ]
            for process in processes:
                process.line()
            before, began = {process: process.cpu_s() for process in processes}, time.monotonic()
            seen = rounds(processes, chosen.rounds, chosen.seconds)
            passed = time.monotonic() - began
            for process in processes:
                process.cpu = (process.cpu_s() - before[process]) / passed
            for process in processes:
                process.end()
        for variant in chosen.variants.split(","):
            of = sorted(statistics.median(one.ratios) for one in processes if one.variant == variant)
            middle = statistics.median(of)
            cpu = statistics.median(one.cpu for one in processes if one.variant == variant)
            results.document["ratios"].setdefault(model, {})[variant] = of
            results.say(
                f"{model:10} {variant:15} {statistics.median(seen[variant]):9.1f} us a step, x plain {middle:.3f}"
                f" ({', '.join(f'{ratio:.3f}' for ratio in of)}),"
                f" {cpu * 100:.0f} % of a core"
            )
        results.save()
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
