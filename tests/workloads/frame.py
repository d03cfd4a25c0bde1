"""What every program of the suite shares: its arguments, warm-up, steps that InferScope sees when it is there, and the
measuring of planted against fixed without it. What the program does in a step is its own file's."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

try:
    from inferscope import scope, step
except ImportError:  # The program is a plain one wherever the package is not.
    from contextlib import nullcontext as scope  # type: ignore[assignment]

    def step(iterable: Any, name: str | None = None) -> Any:
        return iterable


__all__ = ["Workload", "main", "scope", "step"]

# A block is long enough for its mean to be of many steps, and short enough that both sides see the same clocks.
BLOCK_SECONDS = 0.12
MOST_BLOCK_STEPS = 20
ROUNDS = 6


class Workload:
    """One program: `setup` makes what it needs, `planted` is one step with the bottleneck, `fixed` the same
    step without. A healthy program has no `fixed`."""

    # Steps of a recorded run, so that the trace is small enough to be kept.
    STEPS = 40
    WARM = 4
    # What shows only after a while: such a program is recorded for at least so long.
    SECONDS = 0.0

    def __init__(self, device: str, small: bool) -> None:
        self.device, self.small = device, small
        self.cuda = device == "cuda"
        self.dtype = torch.float32 if small else torch.bfloat16

    def size(self, large: int, small: int) -> int:
        """The size for a GPU, or for a look whether the program runs at all."""
        return small if self.small else large

    def setup(self) -> None:
        raise NotImplementedError

    def planted(self) -> None:
        raise NotImplementedError

    fixed: Callable[[Any], None] | None = None

    def begin(self, fixed: bool) -> None:
        """Before a run of steps of one kind: threads and settings that belong to it."""

    def end(self, fixed: bool) -> None:
        """After it."""

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.pin_memory() if self.cuda else tensor

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()


def recorded(work: Workload, fixed: bool, seconds: float) -> dict[str, Any]:
    """Steps of one kind, marked as steps, for so long or so many."""
    one = _one(work, fixed)
    work.begin(fixed)
    for _ in range(work.WARM):
        one()
    work.wait()
    took: list[float] = []
    began = before = time.perf_counter()
    for _ in step(range(work.STEPS), name="request"):
        one()
        now = time.perf_counter()
        took.append(now - before)
        before = now
        if now - began > max(seconds, work.SECONDS) and len(took) >= 8:
            break
    work.end(fixed)
    return {"steps_us": [round(1e6 * one, 1) for one in took], "p50_us": round(1e6 * statistics.median(took), 1)}


def both(work: Workload, seconds: float) -> dict[str, Any]:
    """Short blocks of planted and fixed steps in turn: what the fix gains, in percent of the planted step."""
    if work.fixed is None:
        return {"gain_percent": None}
    for fixed in (False, True):
        _block(work, fixed, work.WARM)
    counts = {}
    for fixed in (False, True):
        each = _block(work, fixed, 2)
        counts[fixed] = max(1, min(MOST_BLOCK_STEPS, int(BLOCK_SECONDS / each)))
    rounds: list[tuple[float, float]] = []
    began = time.perf_counter()
    while len(rounds) < ROUNDS and (len(rounds) < 3 or time.perf_counter() - began < seconds):
        first = bool(len(rounds) % 2)
        means = {fixed: _block(work, fixed, counts[fixed]) for fixed in (first, not first)}
        rounds.append((means[False], means[True]))
    gains = [100 * (1 - fixed / planted) for planted, fixed in rounds]
    return {
        "planted_us": round(1e6 * statistics.median(planted for planted, _ in rounds), 1),
        "fixed_us": round(1e6 * statistics.median(fixed for _, fixed in rounds), 1),
        "gain_percent": round(statistics.median(gains), 2),
        "low": round(min(gains), 2),
        "high": round(max(gains), 2),
        "rounds": len(rounds),
        "steps": counts[False] * len(rounds),
    }


def _block(work: Workload, fixed: bool, count: int) -> float:
    """Seconds a step."""
    one = _one(work, fixed)
    work.begin(fixed)
    one()  # The first one after a change of kind is of neither.
    work.wait()
    began = time.perf_counter()
    for _ in range(count):
        one()
    work.wait()
    took = time.perf_counter() - began
    work.end(fixed)
    return took / count


def _one(work: Workload, fixed: bool) -> Callable[[], None]:
    if fixed and work.fixed is None:
        raise SystemExit("nothing is planted in this program, so there is nothing to fix")
    return work.fixed if fixed else work.planted  # type: ignore[return-value]


def prepared(kind: type[Workload], device: str, small: bool) -> Workload:
    torch.manual_seed(0)
    if small:  # A look whether it runs is not to wait for threads.
        torch.set_num_threads(1)
    work = kind(device, small)
    with torch.device(device):
        work.setup()
    return work


def main(kind: type[Workload]) -> None:
    options = argparse.ArgumentParser(description=sys.modules[kind.__module__].__doc__)
    options.add_argument("--seconds", type=float, default=1.5, help="the longest that steps are taken")
    options.add_argument("--steps", type=int, help="the most steps of a run")
    options.add_argument("--fixed", action="store_true", help="with the known fix")
    options.add_argument("--both", action="store_true", help="planted and fixed in turn: what the fix gains")
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--small", action="store_true", help="tiny sizes: only to see that it runs")
    chosen = options.parse_args()
    with torch.inference_mode():
        work = prepared(kind, chosen.device, chosen.small)
        work.STEPS = chosen.steps or work.STEPS
        found = both(work, chosen.seconds) if chosen.both else recorded(work, chosen.fixed, chosen.seconds)
    mode = "both" if chosen.both else "fixed" if chosen.fixed else "planted"
    print(json.dumps({"program": Path(sys.argv[0]).stem, "mode": mode, **found}), flush=True)
