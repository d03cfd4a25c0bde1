"""Memory on a real GPU: a real out-of-memory error explained and its fix tried, SIGKILL, sleep and wake, every byte
attributed, leaks behind the back of PyTorch. `python tests/gpu/memory.py RESULTS [--only oom,sleep]`, also a part of
`make gpu-test`. Each case has a process of its own and a limit of time, and fails alone."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from case import Case, packed
from machine import inferscope, require_gpu
from memory_cases import CASES, Memory
from results import Results

# What `memory.py` itself asks of the machine, beside the cases.
SPARE = 10


def one(name: str, target: Path, seconds: int) -> None:
    """Runs a case here and writes what it found, whatever happens."""
    command, environ = inferscope()
    os.environ["OUT"] = str(target.parent / "scratch")
    with tempfile.TemporaryDirectory(prefix="inferscope-gpu-memory-") as folder:
        case = Case(command, environ, Path(folder), Results(f"case-{name}", "one case"), False, 0.0)
        memory = Memory(case, seconds)
        try:
            CASES[name][0](memory)
            said = ""
        except AssertionError as error:
            said = str(error) or traceback.format_exc(limit=-1)
        except BaseException:
            said = traceback.format_exc(limit=-3)
        for trace in sorted(Path(folder).glob("*/manifest.json")):
            packed(trace.parent, target.with_name(f"trace-{trace.parent.name}.tar.gz"))
    target.write_text(json.dumps({"said": said, "figures": memory.figures}, default=str), encoding="utf-8")


def ended(process: subprocess.Popen[bytes], limit: int) -> bool:
    """Whether it ended by itself; else it and what it started are killed."""
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def attempt(name: str, folder: Path, seconds: int) -> dict[str, Any]:
    target, limit = folder / f"memory-{name}.json", CASES[name][1]
    target.unlink(missing_ok=True)
    words = [sys.executable, __file__, str(folder), "--case", name, "--seconds", str(seconds)]
    with (folder / f"memory-{name}.txt").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        in_time = ended(process, limit + SPARE)
    if target.is_file():
        return json.loads(target.read_text(encoding="utf-8"))
    said = (folder / f"memory-{name}.txt").read_text(encoding="utf-8", errors="replace")[-1500:]
    why = f"it ended with {process.returncode}" if in_time else f"it had not ended after {limit} s"
    return {"said": f"{why}: {said}", "figures": {}}


def cases(results: Results, names: list[str], seconds: int) -> None:
    folder = results.folder.resolve()
    for name in names:
        began = time.monotonic()
        found = attempt(name, folder, seconds)
        for figure, value in found["figures"].items():
            results.figure(f"memory_{name}_{figure}", value)

        def judged(found: dict[str, Any] = found) -> None:
            if found["said"]:
                raise AssertionError(found["said"])

        results.check(f"memory: {name}", judged)
        results.document["checks"][f"memory: {name}"]["seconds"] = round(time.monotonic() - began, 1)
        results.save()


def memory(case: Case) -> None:
    """As a part of `make gpu-test`; nothing of it can be seen without a GPU."""
    if not case.dry:
        cases(case.results, list(CASES), round(60 * case.minutes))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="where results go")
    options.add_argument("--only", default=",".join(CASES), help=f"some of {','.join(CASES)}")
    options.add_argument("--seconds", type=int, default=60, help="of the live set; the figure to reach says 300")
    options.add_argument("--case", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.case:
        one(chosen.case, chosen.folder.resolve() / f"memory-{chosen.case}.json", chosen.seconds)
        return 0
    names = chosen.only.split(",")
    if unknown := [name for name in names if name not in CASES]:
        options.error(f"no case is called {', '.join(unknown)}: choose from {', '.join(CASES)}")
    os.environ["OUT"] = str(chosen.folder)
    results = Results("gpu-memory", require_gpu("gpu-memory"))
    cases(results, names, chosen.seconds)
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
