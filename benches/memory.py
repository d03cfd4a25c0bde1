"""What the memory profiler costs outside of any GPU: sampling ten times a second, an event of telemetry and its size,
a query over a million, `inferscope info`, and a large snapshot of PyTorch. Beside Stormlog, where it does the same.

The last line is JSON for benches/run.py."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import snapshot_file

HERE = Path(__file__).resolve().parent
COMMAND = Path(sys.executable).with_name("inferscope")
PEER = Path(sys.executable).with_name("gpumemprof")
STORMLOG = HERE / "memory_peer.py"
# Computes for a second or so, without memory of its own.
WORK = (
    "import time\nbegan = time.process_time()\nsum(n * n for n in range({count}))\nprint(time.process_time() - began)"
)


def call(words: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stderr[-600:]}")
    return done


def seconds(words: list[Any]) -> float:
    began = time.perf_counter()
    call(words)
    return time.perf_counter() - began


def info(rounds: int) -> dict[str, float]:
    """In turn, so that both see the same machine."""
    took: dict[str, list[float]] = {"inferscope": [], "stormlog": []}
    for _ in range(rounds):
        took["inferscope"].append(seconds([COMMAND, "info"]))
        took["stormlog"].append(seconds([PEER, "info"]))
    return {name: statistics.median(values) for name, values in took.items()}


def telemetry(speed: Path, folder: Path, peer_events: int) -> dict[str, Any]:
    """A million events by the example, which leaves them; the query is the command, with its start."""
    kept = folder / "telemetry"
    lines = call([speed, kept]).stdout.split()
    found: dict[str, Any] = dict(zip(lines[::2], map(float, lines[1::2]), strict=True))
    found["query_ms"] = 1e3 * min(seconds([COMMAND, "query", "summary", kept]) for _ in range(5))
    said = json.loads(call([COMMAND, "query", "summary", kept, "--format", "json"]).stdout)
    found["queried"] = sum(one["events"] for one in said)
    found["stormlog"] = json.loads(call([sys.executable, STORMLOG, "telemetry", folder / "peer", peer_events]).stdout)
    return found


def sampling(rounds: int, seconds_each: float) -> dict[str, float]:
    """Processor time of everything that samples, as a share of the time that it watched a program sleep; and how much
    longer a program computes that is watched."""
    from sleeping import descendants, processor_ns

    watched = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    assert watched.stdin
    with tempfile.TemporaryDirectory() as folder:
        words = [COMMAND, "track", "--quiet", "--interval", "0.1", "--output", folder, "--pid", watched.pid]
        tracker = subprocess.Popen([*map(str, words)])
        time.sleep(1)
        pids = list(descendants(tracker.pid))
        before, at = processor_ns(pids), time.monotonic()
        time.sleep(seconds_each)
        share = (processor_ns(pids) - before) / 1e9 / (time.monotonic() - at)
        watched.stdin.close()
        watched.wait()
        tracker.wait()
        work = [sys.executable, "-c", WORK.format(count=20_000_000)]
        took: dict[str, list[float]] = {"plain": [], "tracked": [], "again": []}
        for _ in range(rounds):
            for name, values in took.items():
                own = [COMMAND, "track", "--quiet", "--output", f"{folder}/{name}", "--"] if name == "tracked" else []
                values.append(float(call([*own, *work]).stdout.split()[-1]))
    best = {name: min(values) for name, values in took.items()}
    peer = json.loads(call([sys.executable, STORMLOG, "sampling", seconds_each]).stdout)
    return {
        "core": share,
        "slower": best["tracked"] / best["plain"] - 1,
        "noise": abs(best["again"] / best["plain"] - 1),
        "stormlog_core": peer["core"],
    }


def snapshot(folder: Path, megabytes: int) -> dict[str, Any]:
    file = folder / "snapshot.pickle"
    blocks = snapshot_file.write(file, megabytes * 1_000_000)
    with (folder / "analysis.json").open("wb") as out:
        began = time.perf_counter()
        process = subprocess.Popen([COMMAND, "analyze", file, "--format", "json"], stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
    process.returncode = status
    if status:
        raise SystemExit(f"analyze of {file.stat().st_size} bytes ended with {os.waitstatus_to_exitcode(status)}")
    said = json.loads((folder / "analysis.json").read_text("utf-8"))["memory"][0]
    # What is not all there is no figure.
    assert said["allocs"] == blocks, f"{said['allocs']} of {blocks} blocks were read"
    size = file.stat().st_size
    file.unlink()
    return {"bytes": size, "blocks": blocks, "seconds": took, "peak_bytes": used.ru_maxrss * 1024}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("speed", type=Path, help="the example telemetry_speed, built")
    options.add_argument("--quick", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = {
            "info": info(5 if chosen.quick else 20),
            "telemetry": telemetry(chosen.speed, folder, 2_000 if chosen.quick else 100_000),
            "sampling": sampling(3 if chosen.quick else 15, 5 if chosen.quick else 30),
            "snapshot": snapshot(folder, 100 if chosen.quick else 1000),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
