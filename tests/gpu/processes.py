"""Programs of several processes, programs without Python, and programs that end badly: what they did is recorded, and
they end as they would without us."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

from case import WORKLOADS, Case, equal
from machine import ROOT

# Of a program that is cut off there is what CUPTI had delivered: at least what it did before it went on for a while.
CUT_OFF = ("exits", "killed")


def ranks(case: Case) -> None:
    done = case.record("ranks", case.python("ranks.py"))

    def counts() -> None:
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        known = done.known
        if case.dry:
            return
        trace = case.trace("ranks")
        for pid, additions in zip(known["pids"], known["additions"], strict=True):
            named = [number for number, name in trace.processes.items() if "GPU" in name and f"({pid})" in name]
            assert named, f"no device of process {pid}: {trace.processes}"
            # Beside the additions, the tensor is filled with zeros.
            found = [one for one in trace.kernels if one.pid in named and "FillFunctor" not in one.name]
            equal(len(found), additions, f"kernels of rank with pid {pid}")

    case.check("two ranks on one GPU", counts)


def without_python(case: Case) -> None:
    program = compiled(case.folder)
    words = [str(program), "5000"] if program else case.bare("bare.py", "kernels", 5000)
    done = case.record("bare", words)

    def counts() -> None:
        if case.dry:
            return
        equal(done.code, 0, f"exit ({done.err[-500:]})")
        equal(len(case.trace("bare").kernels), done.known["kernels"], "kernels")

    case.check(f"a program without Python ({'C' if program else 'python -I -S'})", counts)


def compiled(folder: Path) -> Path | None:
    """The C program: as built beforehand, or now."""
    built = ROOT / "dist" / "gpu-bare"
    if built.is_file():
        target = folder / "bare-program"
        shutil.copy(built, target)
        target.chmod(0o755)
        return target
    if shutil.which("gcc"):
        target = folder / "bare-program"
        subprocess.run(["gcc", "-O2", "-o", target, WORKLOADS / "bare.c", "-ldl"], check=True)
        return target
    return None


def endings(case: Case) -> None:
    for what, code, kernels in (
        ("forks", 0, 2000),
        ("resets", 0, 2000),
        ("exits", 9, 1000),
        ("killed", -signal.SIGKILL, 1000),
    ):
        done = case.record(what, case.bare("bare.py", what, 1000))

        def ended(what: str = what, code: int = code, kernels: int = kernels, done: object = done) -> None:
            if case.dry:
                return
            assert done.code in (code, 128 - code), f"exit {done.code}, expected {code}: {done.err[-500:]}"
            trace = case.trace(what)
            equal(trace.manifest["state"], "complete", "state of the trace")
            found = len([one for one in trace.kernels if one.name == "nothing"])
            if what in CUT_OFF:
                assert found >= kernels, f"{found} kernels, at least {kernels} were delivered before the end"
            else:
                equal(found, kernels, f"kernels ({trace.notes})")
            if what == "forks":
                equal(done.known["child"], 7, "exit of the forked child")

        case.check(f"a program that {what}", ended)
