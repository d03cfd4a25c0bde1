"""After ten million recorded calls: how long until the trace is readable, how many bytes an event takes on disk, how
much memory the recorder needs and whether that grows. VizTracer does the same with as many calls as it can bear.

Runs in the environment that holds InferScope and the peers; prints its rows as JSON for benches/run.py."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet

PYTHON = Path(sys.executable)
WORKLOAD = Path(__file__).parent / "workloads" / "calls.py"


class Memory:
    """A process's resident memory while it runs, in bytes: (when, of its own, with what it maps)."""

    def __init__(self, pid: int) -> None:
        self.seen: list[tuple[float, int, int]] = []
        self.workload_ended = 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, args=(pid,))
        self.thread.start()

    def watch(self, pid: int) -> None:
        while not self.over.wait(0.02):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                return
            numbers = {key: int(value) * 1024 for key, value in re.findall(r"(VmRSS|RssAnon):\s+(\d+) kB", status)}
            if numbers.get("VmRSS"):
                self.seen.append((time.monotonic(), numbers["RssAnon"], numbers["VmRSS"]))

    def stop(self) -> None:
        self.over.set()
        self.thread.join()

    def peak(self, column: int, first: float = 0.0, last: float = 1e9) -> int:
        """The largest value in a part of the run, in fractions of the time until the workload's end."""
        begin = self.seen[0][0]
        low, high = begin + (self.workload_ended - begin) * first, begin + (self.workload_ended - begin) * last
        return max((row[column] for row in self.seen if low <= row[0] <= high), default=0)


def run(command: list[str | Path]) -> tuple[float, Memory]:
    """Runs a profiler over the workload. The wait is from the workload's last line to the profiler's end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    memory = Memory(process.pid)
    out, err = process.communicate()
    ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    memory.stop()
    said = re.search(r"END_NS=(\d+)", out)
    if process.returncode or not said:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {process.returncode}: {err[-400:]}")
    memory.workload_ended = int(said.group(1)) / 1e9
    return (ended - int(said.group(1))) / 1e9, memory


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


def rows_of(trace: Path, table: str) -> list[dict[str, Any]]:
    return [row for file in trace.glob(f"{table}.*.parquet") for row in pyarrow.parquet.read_table(file).to_pylist()]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=10_000_000)
    options.add_argument("--peer-calls", type=int, default=2_700_000)
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="inferscope-bench-"))
    trace, json_file = folder / "trace", folder / "viztracer.json"
    try:
        ours = [PYTHON.with_name("inferscope"), "run", "--quiet", "--calls", "--output", trace, "--"]
        wait, memory = run([*ours, PYTHON, WORKLOAD, str(chosen.calls)])
        slices = trace.glob("slices.*.parquet")
        events = sum(pyarrow.parquet.read_metadata(file).num_rows for file in slices)
        lost: dict[str, int] = {}
        for row in rows_of(trace, "losses"):
            what = f"{row['collector']}: {row['reason']}"
            lost[what] = lost.get(what, 0) + row["count"]
        viztracer = [
            PYTHON,
            "-m",
            "viztracer",
            "--quiet",
            "--tracer_entries",
            str(chosen.peer_calls * 2),
            "-o",
            json_file,
        ]
        peer_wait, peer_memory = run([*viztracer, WORKLOAD, str(chosen.peer_calls)])
        # VizTracer writes one record a call as well.
        peer_bytes = size(json_file) / chosen.peer_calls
        result = {
            "calls": chosen.calls,
            "events": events,
            "lost": lost,
            "wait_s": wait,
            "bytes_per_event": size(trace) / max(1, events),
            "recording_peak_bytes": memory.peak(2, 0, 1),
            "report_peak_bytes": memory.peak(2, 1, 1e9),
            # Flat: what it had early in the run is what it has at its end.
            "own_early_bytes": memory.peak(1, 0.1, 0.5),
            "own_late_bytes": memory.peak(1, 0.5, 1.0),
            "peer_calls": chosen.peer_calls,
            "peer_wait_s": peer_wait,
            "peer_bytes_per_event": peer_bytes,
            "peer_peak_bytes": peer_memory.peak(2, 0, 1e9),
        }
    finally:
        shutil.rmtree(folder)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
