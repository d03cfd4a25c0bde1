"""Drawings of profiles and telemetry: SVG by the native command, and one HTML page that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _history, _plots
from ._errors import MemoryProfilingError
from ._event import TelemetryEvent
from ._measure import MemorySnapshot, ProfileResult
from ._plugins import Plugins

_HOST = os.uname().nodename or "unknown"
_METRICS = ("memory_diff", "peak_memory")


class MemoryVisualizer:
    """Each method returns SVG (the dashboard HTML), and writes it where `save_path` says. With nothing to draw it
    raises MemoryProfilingError, and writes nothing."""

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
        drawn = events if events is not None else list(_moments(self._results(results)))
        return _saved(_plots.svg("timeline", drawn), save_path)

    def plot_cross_rank_timeline(
        self, events: Sequence[TelemetryEvent], save_path: str | os.PathLike[str] | None = None
    ) -> str:
        """What the process of each rank holds over time, of events of several ranks."""
        return _saved(_plots.svg("ranks", events), save_path)

    def plot_function_comparison(
        self,
        results: Iterable[ProfileResult] | None = None,
        metric: str = "memory_diff",
        save_path: str | os.PathLike[str] | None = None,
    ) -> str:
        """Functions by what they kept (`memory_diff`) or by their peak (`peak_memory`)."""
        if metric not in _METRICS:
            raise ValueError(f"unknown metric {metric!r}: use {' or '.join(_METRICS)}")
        found = self._results(results)
        events = _kept(found) if metric == "memory_diff" else _peaks(found)
        return _saved(_plots.svg("functions", events), save_path)

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
        if not drawings:
            raise MemoryProfilingError("nothing to draw: no events, no profiled calls and no plugins")
        return _saved(_plots.page("Memory", drawings), save_path)

    def _drawn(self, name: str, draw: Any, events: Sequence[TelemetryEvent]) -> str:
        try:
            return str(draw(events))
        except Exception as error:
            return _plots.note(f"{name} could not be drawn: {type(error).__name__}: {error}")

    def export_data(
        self, events: Sequence[TelemetryEvent], save_path: str | os.PathLike[str], format: str = "csv"
    ) -> None:
        """Writes events as `csv`, `json` or `jsonl`."""
        _history.export(events, save_path, format)


def _event(moment: MemorySnapshot, kind: str, **counters: Any) -> TelemetryEvent:
    """A moment of a profiled call, as telemetry has it."""
    return TelemetryEvent(
        int(moment.timestamp * 1e9), kind, "inferscope.memory", 0, os.getpid(), _HOST, moment.device_id, **counters
    )


def _moments(results: Iterable[ProfileResult]) -> Iterator[TelemetryEvent]:
    for result in results:
        for moment in (result.memory_before, result.memory_after):
            if moment.allocated_memory is not None:
                yield _event(moment, "sample", allocator_allocated_bytes=moment.allocated_memory)


def _kept(results: Iterable[ProfileResult]) -> Iterator[TelemetryEvent]:
    for result in results:
        if (kept := result.memory_diff()) is not None:
            yield _event(result.memory_after, "allocation", context=result.function_name, allocator_change_bytes=kept)


def _peaks(results: Iterable[ProfileResult]) -> Iterator[TelemetryEvent]:
    for result in results:
        if (peak := result.peak_memory_usage()) is not None:
            yield _event(result.memory_after, "peak", context=result.function_name, allocator_allocated_bytes=peak)


def _saved(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
