"""Stormlog doing what `inferscope track` and `query` do: appending events to its sink and summarising them, or sampling
this process ten times a second. Prints what it took as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

INTERVAL_S = 0.1


def event(number: int) -> dict[str, Any]:
    from stormlog.telemetry import TelemetryEventV3, telemetry_event_to_dict

    used = number * 7919 * 4096 % (60 << 30)
    made = TelemetryEventV3(
        schema_version=3,
        session_id="s",
        timestamp_ns=1_700_000_000_000_000_000 + number * 100_003_017,
        event_type="sample",
        collector="stormlog.cuda_tracker",
        sampling_interval_ms=100,
        pid=1,
        host="h",
        device_id=number % 2,
        allocator_allocated_bytes=used,
        allocator_reserved_bytes=number // 1000 % 30 << 31,
        allocator_active_bytes=None,
        allocator_inactive_bytes=None,
        allocator_change_bytes=number % 4096 - 2048,
        device_used_bytes=used + (1 << 30),
        device_free_bytes=(79 << 30) - used,
        device_total_bytes=80 << 30,
        context=None,
    )
    return telemetry_event_to_dict(made)


def telemetry(folder: Path, count: int) -> dict[str, float]:
    from stormlog import query
    from stormlog.telemetry_sink import AppendOnlyTelemetrySink, TelemetrySinkConfig

    events = [event(number) for number in range(count)]
    sink = AppendOnlyTelemetrySink(TelemetrySinkConfig(folder, retention_max_files=1000))
    began = time.perf_counter()
    for one in events:
        sink.append(one)
    took = time.perf_counter() - began
    sink.close()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    began = time.perf_counter()
    found = query.open([folder]).query_events()
    queried = time.perf_counter() - began
    assert len(found) == count, f"{len(found)} of {count} events"
    return {
        "events": count,
        "append_ns": 1e9 * took / count,
        "bytes_per_event": size / count,
        "query_ms": 1e3 * queried,
    }


def sampling(seconds: float) -> dict[str, float]:
    from stormlog.cpu_profiler import CPUMemoryTracker

    tracker = CPUMemoryTracker(sampling_interval=INTERVAL_S)
    tracker.start_tracking()
    time.sleep(1)
    before, at = time.process_time(), time.monotonic()
    time.sleep(seconds)
    share = (time.process_time() - before) / (time.monotonic() - at)
    tracker.stop_tracking()
    return {"core": share}


if __name__ == "__main__":
    what, first, *rest = sys.argv[1:]
    print(json.dumps(telemetry(Path(first), int(rest[0])) if what == "telemetry" else sampling(float(first))))
