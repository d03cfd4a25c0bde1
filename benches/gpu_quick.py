"""How much slower models get, in little time on the GPU: one server of each kind (plain, the floor collector,
`inferscope run`) forks a process for every run, and the runs are interleaved. On a machine whose processor changes
pace, the fastest tenth of the steps tells more than the median; both are printed."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu import HERE, MODELS, libcupti, require_floor
from machine import ROOT, inferscope, require_gpu
from results import Results

VARIANTS = ("plain", "floor", "default", "budget", "torch-all")
# The floor with one more kind of records: waits and allocations, which we take from the calls, and whole graphs.
MORE = {"floor-waits": "38", "floor-memory": "49", "floor-graphs": "51"}
# What is recorded less, to see which part costs what.
OPTIONS: dict[str, list[str]] = {
    "default": [],
    "budget": ["--overhead-budget", "2%"],
    "kernel": ["--gpu-detail", "kernel"],
    "no-gpu": ["--gpu-detail", "off"],
    "no-stacks": ["--no-stacks"],
    "no-devices": ["--device-hz", "0"],
    "no-memory": ["--memory-hz", "0"],
}


class Server:
    """One process that has everything imported."""

    def __init__(self, variant: str, command: Path, environ: dict[str, str], folder: Path) -> None:
        words = [sys.executable, str(HERE / "workloads" / "gpu_server.py")]
        environ = dict(environ)
        if variant.startswith("floor"):
            environ |= {"CUDA_INJECTION64_PATH": str(ROOT / "dist" / "floor_cupti.so"), "FLOOR_CUPTI": libcupti()}
            environ |= {"FLOOR_MORE": MORE[variant]} if variant in MORE else {}
        if variant in OPTIONS:
            options = OPTIONS[variant]
            words = [str(command), "run", "--quiet", "--output", str(folder / variant), *options, "--", *words]
        self.mode = variant if variant.startswith("torch-") else "plain"
        self.folder = folder
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environ
        )

    def said(self, word: str) -> list[str]:
        lines: list[str] = []
        for line in self.process.stdout or ():
            if line.startswith(word):
                return lines
            lines.append(line)
        raise SystemExit(f"a server ended: {lines[-3:]}")

    def run(self, model: str, seconds: float) -> dict[str, Any]:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(f"{model} {seconds} {self.mode} {self.folder}\n")
        stdin.flush()
        found = [line for line in self.said("done") if line.startswith("{")]
        return json.loads(found[-1]) if found else {}

    def end(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(timeout=60)


def ratio(runs: dict[str, list[dict[str, Any]]], variant: str, key: str) -> str:
    pairs = [(one.get(key), base.get(key)) for one, base in zip(runs[variant], runs["plain"], strict=False)]
    found = [one / base for one, base in pairs if one and base]
    if not found:
        return "-"
    return f"{statistics.median(found):.3f} ({min(found):.3f}-{max(found):.3f})"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", default=",".join(MODELS))
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"also {', '.join([*MORE, *OPTIONS])}")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=2.0)
    chosen = options.parse_args()
    results = Results("gpu-quick", require_gpu("gpu-bench"), False)
    models, variants = chosen.models.split(","), chosen.variants.split(",")
    command, environ = inferscope()
    require_floor()
    with tempfile.TemporaryDirectory(prefix="inferscope-gpu-quick-") as name:
        servers = {variant: Server(variant, command, environ, Path(name)) for variant in variants}
        for server in servers.values():
            server.said("ready")
        runs: dict[str, dict[str, list[dict[str, Any]]]] = {m: {v: [] for v in variants} for m in models}
        for number in range(chosen.rounds):
            for model in models:
                for variant in variants[number % len(variants) :] + variants[: number % len(variants)]:
                    # torch.profiler slows so much that once is enough.
                    seconds = 1.0 if variant.startswith("torch-") else chosen.seconds
                    said = servers[variant].run(model, seconds)
                    runs[model][variant].append(said)
                    times = [f"{said[key] / 1000:.1f}" for key in ("p10_ns", "median_ns") if key in said]
                    results.say(f"round {number + 1}: {model:10} {variant:9} p10, p50 us a step: {', '.join(times)}")
                    results.document["runs"] = runs
                    results.save()
        for server in servers.values():
            server.end()
    for model in models:
        for variant in variants:
            keys = ("p10_ns", "median_ns", "mean_ns")
            p10, p50, mean = (ratio(runs[model], variant, key) for key in keys)
            results.say(f"{model:10} {variant:9} x plain: p10 {p10}, p50 {p50}, mean {mean}")
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
