"""The last events of a tracker, in bounded memory: what is asked of them, and their export."""

from __future__ import annotations

import csv
import json
import os
import threading
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from ._event import TelemetryEvent

_MOST_ALERTS = 1000


class History:
    """Keeps the newest events; counts all. Safe to use from several threads."""

    def __init__(self, max_events: int) -> None:
        if max_events < 1:
            raise ValueError(f"max_events must be at least 1, got {max_events}")
        self._lock = threading.Lock()
        self._events: deque[TelemetryEvent] = deque(maxlen=max_events)
        self._alerts: deque[TelemetryEvent] = deque(maxlen=_MOST_ALERTS)
        self._counts: Counter[str] = Counter()
        self._peaks: dict[int, int] = {}

    def after_fork(self) -> None:
        """Another thread may have held the lock."""
        self._lock = threading.Lock()

    def add(self, event: TelemetryEvent) -> None:
        with self._lock:
            self._events.append(event)
            self._counts[event.event_type] += 1
            if event.is_alert:
                self._alerts.append(event)
            held = event.process_bytes if event.device_id < 0 else event.device_used_bytes
            if held is not None:
                self._peaks[event.device_id] = max(held, self._peaks.get(event.device_id, 0))

    def events(
        self, event_type: str | None = None, last_n: int | None = None, since: float | None = None
    ) -> list[TelemetryEvent]:
        with self._lock:
            found = list(self._events)
        if event_type is not None:
            found = [event for event in found if event.event_type == event_type]
        if since is not None:
            found = [event for event in found if event.timestamp_ns >= since * 1e9]
        return _last(found, last_n)

    def alerts(self, last_n: int | None = None) -> list[TelemetryEvent]:
        with self._lock:
            return _last(list(self._alerts), last_n)

    def clear(self) -> None:
        with self._lock:
            self._events.clear()
            self._alerts.clear()
            self._counts.clear()
            self._peaks.clear()

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            total = sum(self._counts.values())
            return {
                "total_events": total,
                "events_kept": len(self._events),
                "events_by_type": dict(self._counts),
                "alerts": sum(self._counts[kind] for kind in ("warning", "critical", "error")),
                "peak_process_bytes": self._peaks.get(-1),
                "peak_device_bytes": {device: peak for device, peak in self._peaks.items() if device >= 0},
            }


def _last(found: list[TelemetryEvent], last_n: int | None) -> list[TelemetryEvent]:
    return found if last_n is None else found[len(found) - min(max(last_n, 0), len(found)) :]


def timeline(events: Iterable[TelemetryEvent], interval: float) -> dict[str, list[float]]:
    """Host memory of the process and what allocators hold, one row an interval: the last value in each."""
    if not interval > 0:
        raise ValueError(f"the interval must be more than 0 seconds, got {interval}")
    rows: dict[int, tuple[float, float, float]] = {}
    held = allocated = 0.0
    for event in sorted(events, key=lambda event: event.timestamp_ns):
        if event.event_type != "sample":
            continue
        held = float(event.process_bytes if event.process_bytes is not None else held)
        allocated = float(event.allocator_allocated_bytes if event.allocator_allocated_bytes is not None else allocated)
        rows[int(event.timestamp_ns / 1e9 / interval)] = (event.timestamp_ns / 1e9, held, allocated)
    columns = list(zip(*rows.values(), strict=True)) or [(), (), ()]
    return {name: list(column) for name, column in zip(("timestamps", "process", "allocated"), columns, strict=True)}


def export(events: Iterable[TelemetryEvent], path: str | os.PathLike[str], form: str) -> None:
    """Writes `csv`, `json` (an array) or `jsonl` (a line each)."""
    if form not in ("csv", "json", "jsonl"):
        raise ValueError(f"unknown format {form!r}: use csv, json or jsonl")
    with open(path, "w", encoding="utf-8", newline="") as file:
        if form == "json":
            json.dump([event.to_dict() for event in events], file, indent=1)
        elif form == "jsonl":
            file.writelines(json.dumps(event.to_dict()) + "\n" for event in events)
        else:
            rows = csv.DictWriter(file, [each.name for each in fields(TelemetryEvent)])
            rows.writeheader()
            for event in events:
                rows.writerow({**event.to_dict(), "metadata": json.dumps(dict(event.metadata))})
