"""`make gpu-bench`: what recording costs PyTorch models on a GPU, beside the floor and torch.profiler. Separate
processes, interleaved, in another order each round; the plain run comes twice a round, and how much those two differ is
the noise. Results go to $OUT, else to ./gpu-results. What is run is in workloads/gpu_model.py, how it is judged in
gpu_figures.py."""

from __future__ import annotations

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu_figures import report
from machine import ROOT, inferscope, require_gpu
from results import Results

HERE = Path(__file__).resolve().parent
MODELS = ("gpt2", "bert", "resnet50", "mlp", "bert-graph")
OPTIONS: dict[str, list[str]] = {
    "default": [],
    "kernel": ["--gpu-detail", "kernel"],
    "budget": ["--overhead-budget", "2%"],
    "layers": ["--layers"],
}
VARIANTS = ("plain", "floor", "default", "plain-again", "kernel", "budget", "layers", "torch-cuda", "torch-all")
# Samples that a busy machine had no time for are no lost records.
OUTSIDE = ("stacks", "threads", "memory", "devices")
# torch.profiler keeps everything in memory and takes long to stop: it is run for no longer than this.
MOST_PROFILED_S = 5.0


def libcupti() -> str:
    """PyTorch's own, as our library would choose it."""
    import torch

    site = Path(torch.__file__).resolve().parents[1]
    found = sorted(glob.glob(str(site / "nvidia" / "*" / "lib" / "libcupti.so.*")), reverse=True)
    major = f".so.{(torch.version.cuda or '').partition('.')[0]}"
    fitting = [path for path in found if path.endswith(major)] or found
    return fitting[0] if fitting else "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"


def require_floor() -> None:
    """A library that is not there is silently not loaded: the floor would be the plain run."""
    if not (ROOT / "dist" / "floor_cupti.so").exists():
        raise SystemExit("there is no dist/floor_cupti.so: `make gpu-programs` builds it; nothing was run")


class Bench:
    def __init__(self, seconds: float, dry: bool) -> None:
        self.seconds, self.dry = seconds, dry
        self.command, self.environ = inferscope()
        self.floor = ROOT / "dist" / "floor_cupti.so"

    def run(self, model: str, variant: str, folder: Path) -> dict[str, Any]:
        mode = variant if variant.startswith("torch-") else "plain"
        seconds = min(self.seconds, MOST_PROFILED_S) if mode != "plain" else self.seconds
        workload = [sys.executable, str(HERE / "workloads" / "gpu_model.py"), model, str(seconds), mode, str(folder)]
        environ = dict(self.environ)
        if variant == "floor":
            environ |= {"CUDA_INJECTION64_PATH": str(self.floor), "FLOOR_CUPTI": "" if self.dry else libcupti()}
        trace = folder / "trace"
        if variant in OPTIONS:
            recorded = [str(self.command), "run", "--quiet", "--output", str(trace), *OPTIONS[variant]]
            workload = [*recorded, "--", *workload]
        done = subprocess.run(workload, capture_output=True, text=True, env=environ, timeout=600)
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            return {"error": f"exit {done.returncode}: {done.stderr[-600:]}"}
        said = json.loads(lines[-1])
        # From the workload's last line to the end of the command: the report is written then.
        said["after_end_s"] = (ended - said["end_ns"]) / 1e9
        if variant in OPTIONS:
            said |= self.looked_at(trace)
        return said

    def looked_at(self, trace: Path) -> dict[str, Any]:
        done = subprocess.run(
            [str(self.command), "analyze", str(trace), "--format", "json"],
            capture_output=True,
            text=True,
            env=self.environ,
        )
        if done.returncode:
            return {"error": f"analyze: {done.stderr[-400:]}"}
        analysis = json.loads(done.stdout)
        work = analysis.get("gpu_work") or {}
        counts = {part: sum(row["count"] for row in work.get(part, [])) for part in ("kernels", "copies", "api_calls")}
        size = sum(file.stat().st_size for file in trace.glob("*.parquet"))
        health = analysis["health"]
        return {
            "counts": counts,
            "trace_bytes": size,
            "gpu_table_bytes": sum(file.stat().st_size for file in trace.glob("gpu.*.parquet")),
            "lost": sum(loss["count"] for loss in health["losses"] if loss["collector"] not in OUTSIDE),
            "losses": health["losses"],
            "own_overhead": work.get("overhead"),
            "clock": work.get("clock"),
            "answer": analysis.get("bottleneck"),
        }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", default=",".join(MODELS), help=f"some of {','.join(MODELS)}")
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"some of {','.join(VARIANTS)}")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=4.0, help="of steps, each run")
    options.add_argument("--dry", action="store_true", help="without a GPU: shows that the script works")
    chosen = options.parse_args()
    machine = "no GPU: a dry run, no figure counts" if chosen.dry else require_gpu("gpu-bench")
    bench, results = Bench(chosen.seconds, chosen.dry), Results("gpu-bench", machine, chosen.dry)
    models, variants = chosen.models.split(","), chosen.variants.split(",")
    if "floor" in variants and not bench.floor.is_file():
        results.say("the floor is not built (make gpu-programs): left out")
        variants.remove("floor")
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {model: {name: [] for name in variants} for model in models}
    for number in range(chosen.rounds):
        for model in models:
            turn = number % len(variants)
            for variant in variants[turn:] + variants[:turn]:
                with tempfile.TemporaryDirectory(prefix="inferscope-gpu-bench-") as folder:
                    said = bench.run(model, variant, Path(folder))
                runs[model][variant].append(said)
                step = f"{said['median_ns'] / 1000:.1f} us a step" if "median_ns" in said else said.get("error")
                results.say(f"round {number + 1} of {chosen.rounds}: {model:10} {variant:12} {step}")
                results.document["runs"] = runs
                results.save()
    for line in report(runs, results.document["figures"], judged=not chosen.dry):
        results.say(line)
    results.save()
    return 0


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
