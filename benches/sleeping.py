"""What sampling a large pool of threads costs the sampler: 500 that sleep, and 499 beside one that computes, at 100 Hz,
for InferScope and for `py-spy record --nonblocking`. Everything that the command starts is counted, except the
workload."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet

PYTHON = Path(sys.executable)
WORKLOAD = Path(__file__).parent / "workloads" / "sleeping.py"
# The first look at a process reads all of its stacks and finds the interpreter's symbols.
START_UP_S = 3


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def processor_ns(pids: list[int]) -> int:
    """Time on a processor of all threads of these processes."""
    files = [file for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(file.read_text().split()[0]) for file in files)


def samples(folder: Path, seconds: float) -> float:
    """Samples a second of each thread, by what is in the trace."""
    files = list((folder / "t").glob("samples.*.parquet"))
    times = {time for file in files for time in pyarrow.parquet.read_table(file)["time_ns"].to_pylist()}
    return len(times) / seconds


def measure(command: list[str | Path], seconds: float, folder: Path) -> dict[str, float]:
    began = time.monotonic()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=folder
    ) as process:
        assert process.stdin and process.stdout
        # py-spy says something first.
        workload = next(int(line) for line in process.stdout if line.strip().isdigit())
        time.sleep(START_UP_S)
        ours = [pid for pid in descendants(process.pid) if pid != workload]
        before, at = processor_ns(ours), time.monotonic()
        time.sleep(seconds)
        share = (processor_ns(ours) - before) / 1e9 / (time.monotonic() - at)
        process.stdin.close()
        process.wait()
    return {"core": share, "seconds": time.monotonic() - began}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10)
    chosen = options.parse_args()
    result: dict[str, dict[str, dict[str, float]]] = {}
    for sleeping, busy in ((500, 0), (499, 1)):
        folder = Path(tempfile.mkdtemp(prefix="inferscope-bench-"))
        try:
            workload = [PYTHON, WORKLOAD, str(sleeping), str(busy)]
            run = [PYTHON.parent / "inferscope", "run", "--quiet", "--rate", "100", "--output", folder / "t", "--"]
            spy = [PYTHON.parent / "py-spy", "record", "--nonblocking", "-r", "100", "-o", folder / "p.svg", "--"]
            ours = measure([*run, *workload], chosen.seconds, folder)
            ours["samples"] = samples(folder, ours["seconds"])
            result[f"{sleeping} + {busy}"] = {
                "inferscope": ours,
                "py-spy": measure([*spy, *workload], chosen.seconds, folder),
            }
        finally:
            shutil.rmtree(folder)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
