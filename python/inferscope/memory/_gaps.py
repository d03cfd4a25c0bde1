"""Where the memory of a device is that its framework's allocator does not account for, from telemetry of both."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from ._bytes import format_bytes
from ._event import TelemetryEvent

_LEAST_SAMPLES = 5
#: Of the device's memory. Less is the context of CUDA and the kernels that libraries load.
_DRIFT = 0.05
_SPIKE = 0.10
#: Of what is reserved.
_UNUSED = 0.30
_LEAST_BYTES = 256 << 20
_REMEDIES = {
    "persistent_drift": [
        "See which process and library hold it: `inferscope query events --format json` has process_bytes by device",
        "Memory of NCCL, cuBLAS and CUDA graphs is outside PyTorch's allocator: count it in when you set limits",
    ],
    "transient_spike": [
        "Leave room for the spike, or make its workspace smaller (CUBLAS_WORKSPACE_CONFIG, batch size)"
    ],
    "fragmentation_like": [
        "Take a snapshot (torch.cuda.memory._dump_snapshot) and open it with `inferscope analyze`: it says whether "
        "expandable_segments would help, and how much",
    ],
}


@dataclass(frozen=True)
class GapFinding:
    """One thing that was found, with the numbers that it rests on."""

    classification: str
    severity: str
    confidence: float
    evidence: dict[str, Any]
    description: str
    remediation: list[str] = field(default_factory=list)
    evidence_timestamp_ns: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Point:
    time_ns: int
    used: int
    reserved: int
    allocated: int | None
    total: int | None
    #: Whether `used` is of this program alone.
    own: bool

    @property
    def gap(self) -> int:
        return self.used - self.reserved


def analyze_hidden_memory_gaps(events: Sequence[TelemetryEvent]) -> list[GapFinding]:
    """Gaps by device, the most severe first. Nothing where the device or the allocator was not measured."""
    devices = sorted({event.device_id for event in events if event.device_id >= 0})
    found = [finding for device in devices for finding in _of_device(device, _points(events, device))]
    return sorted(found, key=lambda finding: (finding.severity != "critical", -finding.confidence))


def _points(events: Sequence[TelemetryEvent], device: int) -> list[_Point]:
    """What the allocator said, each with what the device said nearest to it."""
    mine = [event for event in events if event.device_id == device and event.event_type == "sample"]
    mine.sort(key=lambda event: event.timestamp_ns)
    outside = [event for event in mine if event.device_used_bytes is not None]
    times = [event.timestamp_ns for event in outside]
    points = []
    for event in mine:
        reserved = event.allocator_reserved_bytes
        if reserved is None or not outside:
            continue
        near = event if event.device_used_bytes is not None else _nearest(outside, times, event.timestamp_ns)
        # Later, the allocator has long held something else.
        if abs(near.timestamp_ns - event.timestamp_ns) > 2_000_000 * max(near.sampling_interval_ms, 100):
            continue
        held = near.process_bytes
        used = held if held is not None else near.device_used_bytes or 0
        total = near.device_total_bytes or event.device_total_bytes
        allocated = event.allocator_allocated_bytes
        points.append(_Point(event.timestamp_ns, used, reserved, allocated, total, held is not None))
    return points


def _nearest(events: list[TelemetryEvent], times: list[int], time_ns: int) -> TelemetryEvent:
    after = bisect_left(times, time_ns)
    candidates = events[max(after - 1, 0) : after + 1]
    return min(candidates, key=lambda event: abs(event.timestamp_ns - time_ns))


def _of_device(device: int, points: list[_Point]) -> list[GapFinding]:
    if len(points) < _LEAST_SAMPLES:
        return []
    found = []
    gaps = [point.gap for point in points]
    usual = int(median(gaps))
    total = max((point.total or 0 for point in points), default=0) or max(point.used for point in points)
    of_whom = "by this program" if points[-1].own else "by anybody (the driver does not tell by process)"
    growth = int(median(gaps[-(len(gaps) // 5) :] or gaps)) - int(median(gaps[: max(len(gaps) // 5, 1)]))

    def add(kind: str, size: int, at: _Point, text: str, confidence: float) -> None:
        evidence = {"device_id": device, "bytes": size, "share": round(size / total, 4), "samples": len(points)}
        severity = "critical" if size > 2 * _SPIKE * total else "warning"
        remedies = list(_REMEDIES[kind])
        found.append(GapFinding(kind, severity, confidence, evidence, text, remedies, at.time_ns))

    if growth > max(_DRIFT * total, _LEAST_BYTES):
        rising = sum(later >= earlier for earlier, later in pairwise(gaps)) / (len(gaps) - 1)
        text = f"device {device}: memory outside the allocator grew by {format_bytes(growth)}; it is held {of_whom}"
        add("persistent_drift", growth, points[-1], text, round(min(rising, 0.95), 2))
    highest = max(points, key=lambda point: point.gap)
    spike = highest.gap - max(usual, int(median(gaps[-(len(gaps) // 5) :] or gaps)))
    if spike > max(_SPIKE * total, _LEAST_BYTES):
        text = f"device {device}: memory outside the allocator was {format_bytes(spike)} above its usual for a while"
        add("transient_spike", spike, highest, text, 0.7)
    unused = [point.reserved - point.allocated for point in points if point.allocated is not None]
    reserved = int(median(point.reserved for point in points))
    if unused and int(median(unused)) > max(_UNUSED * reserved, _LEAST_BYTES):
        idle = int(median(unused))
        text = f"device {device}: {format_bytes(idle)} of {format_bytes(reserved)} reserved memory is in no tensor"
        add("fragmentation_like", idle, points[-1], text, 0.6)
    return found
