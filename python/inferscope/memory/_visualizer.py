"""Drawings of profiles and telemetry: SVG, and one HTML page that needs nothing else."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import _history, _svg
from ._event import TelemetryEvent
from ._measure import ProfileResult
from ._plugins import Plugins

_METRICS = ("memory_diff", "peak_memory")


class MemoryVisualizer:
    """Each method returns SVG (the dashboard HTML), and writes it where `save_path` says."""

    def __init__(self, profiler: Any = None, plugins: Plugins | None = None) -> None:
        self._profiler = profiler
        self._plugins = plugins

    def _results(self, results: Iterable[ProfileResult] | None) -> list[ProfileResult]:
        if results is not None:
            return list(results)
        return list(self._profiler.results) if self._profiler is not None else []

    def plot_memory_timeline(
        self,
        events: Sequence[TelemetryEvent] | None = None,
        results: Iterable[ProfileResult] | None = None,
        save_path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Memory over time: of a tracker's events with its phases, or of a profiler's results."""
        if events is not None:
            marks = [(e.timestamp_ns / 1e9, e.context or "") for e in events if e.event_type == "phase_enter"]
            return _saved(_svg.lines("Memory over time", _series(events), marks), save_path)
        points = [
            (moment.timestamp, float(moment.allocated_memory))
            for result in self._results(results)
            for moment in (result.memory_before, result.memory_after)
            if moment.allocated_memory is not None
        ]
        return _saved(_svg.lines("Memory before and after each call", {"allocated": points}), save_path)

    def plot_cross_rank_timeline(
        self, events: Sequence[TelemetryEvent], save_path: str | os.PathLike[str] | None = None
    ) -> str:
        """What the process of each rank holds over time, of events of several ranks."""
        series: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for event in events:
            if event.event_type == "sample" and event.process_bytes is not None:
                place = "host" if event.device_id < 0 else f"device {event.device_id}"
                rank = "" if event.rank is None else f"rank {event.rank} "
                series[rank + place].append((event.timestamp_ns / 1e9, float(event.process_bytes)))
        return _saved(_svg.lines("Memory by rank", series), save_path)

    def plot_function_comparison(
        self,
        results: Iterable[ProfileResult] | None = None,
        metric: str = "memory_diff",
        save_path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Functions by what they kept (`memory_diff`) or by their peak (`peak_memory`)."""
        if metric not in _METRICS:
            raise ValueError(f"unknown metric {metric!r}: use {' or '.join(_METRICS)}")
        values: dict[str, float] = {}
        for result in self._results(results):
            name = result.function_name
            if metric == "memory_diff":
                values[name] = values.get(name, 0) + (result.memory_diff() or 0)
            else:
                values[name] = max(values.get(name, 0), result.peak_memory_usage() or 0)
        title = "Memory kept by function" if metric == "memory_diff" else "Peak memory by function"
        return _saved(_svg.bars(title, values), save_path)

    def create_dashboard(
        self,
        events: Sequence[TelemetryEvent] | None = None,
        results: Iterable[ProfileResult] | None = None,
        save_path: str | os.PathLike[str] | None = None,
    ) -> str:
        """One page with everything there is, and the drawings of plugins."""
        found = self._results(results)
        drawings = [] if events is None else [self.plot_memory_timeline(events)]
        if found:
            drawings += [self.plot_memory_timeline(results=found)]
            drawings += [self.plot_function_comparison(found, metric) for metric in _METRICS]
        for name, draw in ({} if self._plugins is None else self._plugins.visualizations()).items():
            drawings.append(self._drawn(name, draw, events or ()))
        return _saved(_svg.page("Memory", drawings or [_svg.lines("Memory", {})]), save_path)

    def _drawn(self, name: str, draw: Any, events: Sequence[TelemetryEvent]) -> str:
        try:
            return str(draw(events))
        except Exception as error:
            return _svg.bars(f"{name} could not be drawn: {type(error).__name__}: {error}"[:200], {})

    def export_data(
        self, events: Sequence[TelemetryEvent], save_path: str | os.PathLike[str], format: str = "csv"
    ) -> None:
        """Writes events as `csv`, `json` or `jsonl`."""
        _history.export(events, save_path, format)


def _series(events: Sequence[TelemetryEvent]) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event.event_type != "sample":
            continue
        place = "host" if event.device_id < 0 else f"device {event.device_id}"
        values = {
            f"{place}: program": event.process_bytes,
            f"{place}: allocated": event.allocator_allocated_bytes,
            f"{place}: reserved": event.allocator_reserved_bytes,
        }
        if event.device_id >= 0:
            values[f"{place}: used"] = event.device_used_bytes
        for name, value in values.items():
            if value is not None:
                series[name].append((event.timestamp_ns / 1e9, float(value)))
    return series


def _saved(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
