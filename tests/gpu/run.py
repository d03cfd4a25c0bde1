"""`make gpu-test`: everything that only a real GPU can show. Programs are recorded by the command as users run it, and
what the trace says is compared with what the programs know. Results go to $OUT, else to ./gpu-results. Needs PyTorch,
no pytest."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import everything
import fixes
import long
import memory
import others
import processes
from case import Case, equal
from clock_check import judge
from machine import inferscope, require_gpu
from results import Results


def clock(case: Case) -> None:
    """Kernels that spin for a known time lie where the host saw them, for as long as `--minutes` says."""
    seconds = 2 if case.dry else 60 * case.minutes
    file = case.folder / "clock-seen.json"
    done = case.record("clock", case.python("clock.py", seconds, file), "--no-stacks")

    def judged() -> None:
        if case.dry:
            return
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        trace, seen = case.trace("clock"), json.loads(file.read_text())
        kernels = [(one.start, one.end) for one in trace.kernels if one.name == "spin"]
        equal(len(kernels), len(seen["seen"]), "kernels")
        found = judge(seen["seen"], kernels, seen["spin_ns"])
        found["reported_residual_ns"] = trace.work["clock"]["residual_ns"]
        for name, value in found.items():
            case.results.figure(f"clock_{name}", value)
        for name in ("start_before_launch", "end_after_return", "start_after_seen"):
            equal(found[name], 0, name.replace("_", " "))
        equal(trace.work["clock"]["violations"], 0, "work that starts before its call")
        spread = found["windowed_min_spread_ns"]
        assert spread <= 1000, f"the least delay moves by {spread} ns over the run, at most 1000 are allowed"

    case.check(f"clock: {seconds:.0f} s of spinning kernels", judged)


CASES = {
    "tour": everything.tour,
    "decode": everything.decode,
    "ranks": processes.ranks,
    "bare": processes.without_python,
    "endings": processes.endings,
    "inside": others.inside,
    "outside": others.outside,
    "late": others.late,
    "windows": others.windows,
    "fixes": fixes.fixes,
    "long": long.long,
    "memory": memory.memory,
    "clock": clock,
    "fixtures": everything.fixtures,
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default=",".join(CASES), help=f"some of {','.join(CASES)}")
    options.add_argument("--minutes", type=float, default=0.5, help="of clock, and of long")
    options.add_argument("--dry", action="store_true", help="without a GPU: run the programs, check what needs none")
    chosen = options.parse_args()
    machine = "no GPU: a dry run" if chosen.dry else require_gpu("gpu-test")
    command, environ = inferscope()
    results = Results("gpu-test", machine, chosen.dry)
    with tempfile.TemporaryDirectory(prefix="inferscope-gpu-test-") as folder:
        case = Case(command, environ, Path(folder), results, chosen.dry, chosen.minutes)
        for name in chosen.only.split(","):
            results.say(f"--- {name}")
            CASES[name](case)
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
