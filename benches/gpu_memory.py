"""What recording adds to the memory of a program that launches on and on, for each launch: nothing, the floor
collector as it is and otherwise, and InferScope. Once a CUDA graph was captured with CUPTI loaded, it keeps some 32
bytes of the host's memory for every launch (seen with CUDA 13.0): programs show when, variants what avoids it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu import HERE, libcupti, require_floor
from machine import ROOT, inferscope, require_gpu
from results import Results

# Additions one by one; the same after a capture of them as a graph; with that graph gone; recorded only after the
# capture; as replays of the graph, whose nodes count as launches.
PROGRAMS = ("adds", "captured", "dropped", "late", "replayed")
FLOORS: dict[str, dict[str, str]] = {
    "floor": {},
    # Remedies: nothing is recorded while a graph is captured, nothing before, or CUPTI is given up half-way.
    "floor-around": {"FLOOR_AROUND": "1"},
    "floor-late": {"FLOOR_LATE": "1"},
    "floor-finalized": {"FLOOR_FINALIZE": "1"},
    # What else may matter. Attributes go by the numbers of CUpti_ActivityAttribute: 0 bytes of a device buffer,
    # 2 how many of them at most, 8 pinned on the host, 9 buffers for each thread.
    "floor-stopped": {},
    "floor-flush": {"FLOOR_FLUSH": "1000"},
    "floor-forced": {"FLOOR_FLUSH": "1000", "FLOOR_FORCED": "1"},
    "floor-calls": {"FLOOR_KINDS": "0"},
    "floor-kernels": {"FLOOR_CALLS": "0"},
    "floor-subscribed": {"FLOOR_KINDS": "0", "FLOOR_CALLS": "0"},
    "floor-unsubscribed": {"FLOOR_SUBSCRIBE": "0", "FLOOR_CALLS": "0"},
    "floor-clock": {"FLOOR_CLOCK": "0"},
    "floor-pool": {"FLOOR_ATTRIBUTE": "2=8=8"},
    "floor-small": {"FLOOR_ATTRIBUTE": "0=320000=8,2=25=8"},
    "floor-pinned": {"FLOOR_ATTRIBUTE": "8=1=1"},
    "floor-threads": {"FLOOR_ATTRIBUTE": "9=0=1"},
    "floor-runtime": {"FLOOR_MORE": "5"},
    "floor-turns": {},
}
OURS = {"default": [], "everything": ["--overhead-budget", "none"]}
ALL = ("plain", *FLOORS, *OURS)
VARIANTS = ("plain", "floor", "floor-around", "floor-late", "floor-finalized", "everything")


def start(program: str, variant: str, seconds: float, folder: Path) -> subprocess.Popen[str]:
    command, environ = inferscope()
    words = [sys.executable, str(HERE / "workloads" / "gpu_memory.py"), str(seconds), program]
    trace = str(folder / f"{program}-{variant}")
    if variant in FLOORS:
        floor = {"CUDA_INJECTION64_PATH": str(ROOT / "dist" / "floor_cupti.so"), "FLOOR_CUPTI": libcupti()}
        environ = environ | floor | FLOORS[variant] | {"FLOOR_COUNT": f"{trace}.count"}
        environ |= {"FLOOR_CYCLE": f"{trace}.turns"} if variant == "floor-turns" else {}
        environ |= {"FLOOR_LATE": "1"} if program == "late" else {}
        # The warm-up comes first: of the five parts that the program tells, one or two lie before.
        halfway = str(2 + int(seconds / 2))
        environ |= {"FLOOR_STOP_AFTER": halfway} if variant in ("floor-stopped", "floor-finalized") else {}
    elif variant in OURS and program == "late":
        words = [*words, trace]
        environ |= {"INFERSCOPE_OVERHEAD_BUDGET": "none"} if variant == "everything" else {}
    elif variant in OURS:
        words = [str(command), "run", "--quiet", "--output", trace, *OURS[variant], "--", *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


def on_device() -> dict[int, int]:
    """Mebibytes on the GPU by process, where the driver tells."""
    words = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    pairs = (line.split(",") for line in said.splitlines() if line.count(",") == 1)
    return {int(pid): int(used) for pid, used in pairs if used.strip().isdigit()}


def told(results: Results, program: str, variant: str, process: subprocess.Popen[str], folder: Path) -> None:
    assert process.stdout is not None
    lines = [line for line in process.stdout.read().splitlines() if line.startswith("{")]
    assert process.returncode == 0 and lines, f"it ended with {process.returncode}"
    said: dict[str, Any] = json.loads(lines[-1])
    recorded = ""
    if variant in FLOORS:
        counted = folder / f"{program}-{variant}.count"
        assert counted.exists(), "the floor was not loaded: this would be the plain run"
        names = ("kernels", "timeless", "of_graphs")
        said |= dict(zip(names, map(int, counted.read_text(encoding="utf-8").split()), strict=True))
        recorded = f"; {said['kernels']} recorded, {said['timeless']} without a time, {said['of_graphs']} of graphs"
    results.document["programs"].setdefault(program, {})[variant] = said
    where = ", ".join(f"{name} {grown / 1e6:+.1f}" for name, grown in said["where"].items())
    results.say(
        f"{program:8} {variant:15} {said['launched']:9} launches, {said['grown'] / 1e6:+8.1f} MB,"
        f" {said['grown'] / max(said['launched'], 1):5.1f} bytes a launch, by fifths {said['parts']}{recorded}; {where}"
    )


def run_at_once(results: Results, runs: list[tuple[str, str]], seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="inferscope-gpu-memory-") as name:
        folder = Path(name)
        running = {(program, variant): start(program, variant, seconds, folder) for program, variant in runs}
        samples = []
        while any(process.poll() is None for process in running.values()):
            samples.append(sum(on_device().values()))
            time.sleep(3)
        for (program, variant), process in running.items():
            results.check(f"{program} {variant}", partial(told, results, program, variant, process, folder))
        results.say(f"         on the device, of all of them, every 3 s: {samples} MiB")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", default=",".join(PROGRAMS))
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"all, or some of {', '.join(ALL)}")
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("--at-once", type=int, default=4, help="processes side by side: nothing is timed")
    chosen = options.parse_args()
    programs = chosen.programs.split(",")
    variants = list(ALL) if chosen.variants == "all" else chosen.variants.split(",")
    if unknown := {*programs} - {*PROGRAMS} | {*variants} - {*ALL}:
        options.error(f"nobody knows {', '.join(sorted(unknown))}")
    results = Results("gpu-memory", require_gpu("gpu-memory"), False)
    require_floor()
    results.document["programs"] = {}
    runs = [(program, variant) for program in programs for variant in variants]
    for at in range(0, len(runs), chosen.at_once):
        run_at_once(results, runs[at : at + chosen.at_once], chosen.seconds)
        results.save()
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
