"""What profiles and telemetry say: functions that keep what they allocate, memory that only grows, gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from ._bytes import format_bytes
from ._event import TelemetryEvent
from ._gaps import GapFinding, analyze_hidden_memory_gaps
from ._measure import ProfileResult
from ._plugins import Plugins

_LEAST_CALLS = 5
_LEAST_GROWTH = 16 << 20
#: A program that is loading grows, and is no leak: the first part of the time is not looked at.
_WARM_UP = 0.2
_WINDOWS = 8
_LEAST_SAMPLES = 4 * _WINDOWS


@dataclass(frozen=True)
class MemoryPattern:
    """What calls of a function have in common."""

    pattern_type: str
    description: str
    severity: str
    affected_functions: list[str]
    metrics: dict[str, Any]
    suggestions: list[str]


@dataclass(frozen=True)
class LeakFinding:
    """Memory that grows and does not come back."""

    #: -1 is host memory.
    device_id: int
    growth_bytes: int
    bytes_per_second: float
    confidence: float
    description: str


class MemoryAnalyzer:
    """Looks at the results of a profiler and at events of a tracker. `plugins` are told of leaks."""

    def __init__(self, profiler: Any = None, plugins: Plugins | None = None) -> None:
        self._profiler = profiler
        self._plugins = plugins

    def _results(self, results: Iterable[ProfileResult] | None) -> list[ProfileResult]:
        if results is not None:
            return list(results)
        return list(self._profiler.results) if self._profiler is not None else []

    def analyze_memory_patterns(self, results: Iterable[ProfileResult] | None = None) -> list[MemoryPattern]:
        """Functions that keep memory in nearly every call, the most first."""
        by_name: dict[str, list[int]] = defaultdict(list)
        for result in self._results(results):
            kept = result.memory_diff()
            if kept is not None and not result.failed:
                by_name[result.function_name].append(kept)
        found = []
        for name, diffs in by_name.items():
            # The first calls fill caches.
            later = diffs[1:]
            grew = sum(diff > 0 for diff in later)
            if len(later) < _LEAST_CALLS or grew < 0.8 * len(later) or sum(later) < _LEAST_GROWTH:
                continue
            metrics = {"calls": len(diffs), "calls_that_grew": grew, "kept_bytes": sum(later)}
            text = f"{name} kept {format_bytes(sum(later))} over {len(later)} calls; {grew} of them grew it"
            advice = ["Look for what it appends to: lists of tensors with their graph, caches without a limit"]
            found.append(MemoryPattern("growth", text, "warning", [name], metrics, advice))
        return sorted(found, key=lambda pattern: -int(pattern.metrics["kept_bytes"]))

    def detect_leaks(self, events: Sequence[TelemetryEvent]) -> list[LeakFinding]:
        """By device: memory whose lows rise from window to window after the start. Plugins are told of each."""
        found = []
        for device in sorted({event.device_id for event in events}):
            finding = _leak(device, _held(events, device))
            if finding is not None:
                found.append(finding)
                if self._plugins is not None:
                    self._plugins.on_leak_detected(finding)
        return found

    def analyze_memory_gaps(self, events: Sequence[TelemetryEvent]) -> list[GapFinding]:
        """Memory of devices that the allocator does not account for."""
        return analyze_hidden_memory_gaps(events)

    def generate_optimization_report(
        self, results: Iterable[ProfileResult] | None = None, events: Sequence[TelemetryEvent] | None = None
    ) -> dict[str, Any]:
        """All of it, as JSON has it. What was not given is missing, not fine."""
        report: dict[str, Any] = {}
        found = self._results(results)
        if found:
            report["patterns"] = [asdict(pattern) for pattern in self.analyze_memory_patterns(found)]
        if events is not None:
            report["leaks"] = [asdict(leak) for leak in self.detect_leaks(events)]
            report["gaps"] = [gap.to_dict() for gap in self.analyze_memory_gaps(events)]
        return report


def _held(events: Sequence[TelemetryEvent], device: int) -> list[tuple[int, int]]:
    """Of the host what the process holds; of a device what its allocator handed out, else what the process holds."""
    mine = [event for event in events if event.device_id == device and event.event_type == "sample"]
    found = [(event.timestamp_ns, event.allocator_allocated_bytes) for event in mine]
    if device < 0 or all(held is None for _, held in found):
        found = [(event.timestamp_ns, event.process_bytes) for event in mine]
    return sorted((time_ns, held) for time_ns, held in found if held is not None)


def _leak(device: int, held: list[tuple[int, int]]) -> LeakFinding | None:
    held = held[int(len(held) * _WARM_UP) :]
    if len(held) < _LEAST_SAMPLES:
        return None
    size = len(held) // _WINDOWS
    lows = [min(bytes for _, bytes in held[at * size : (at + 1) * size]) for at in range(_WINDOWS)]
    growth = lows[-1] - lows[0]
    rises = sum(later > earlier for earlier, later in pairwise(lows)) / (_WINDOWS - 1)
    # One step up is a cache or a larger batch, not a leak.
    largest = max(later - earlier for earlier, later in pairwise(lows))
    if growth < max(_LEAST_GROWTH, 0.05 * lows[0]) or rises < 0.7 or largest > 0.6 * growth:
        return None
    seconds = (held[-1][0] - held[0][0]) / 1e9 or 1e-9
    rate = growth / seconds
    place = "host memory" if device < 0 else f"device {device}"
    text = f"{place} grew by {format_bytes(growth)} in {seconds:.3g} s ({format_bytes(rate)} a second) and stayed"
    return LeakFinding(device, growth, rate, round(0.6 + 0.35 * rises, 2), text)
