"""One event of memory telemetry, as `inferscope track` writes it and other tools of this kind read it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ._errors import MemoryProfilingError

EVENT_TYPES = frozenset(
    [
        "start",
        "stop",
        "sample",
        "allocation",
        "deallocation",
        "peak",
        "warning",
        "critical",
        "error",
        "cleanup",
        "collector_degraded",
        "collector_recovered",
        "phase_enter",
        "phase_exit",
    ]
)
ALERTS = frozenset({"warning", "critical", "error"})
_REQUIRED = ("allocator_allocated_bytes", "allocator_reserved_bytes", "allocator_change_bytes", "device_used_bytes")
_OPTIONAL = ("session_id", "job_id", "rank", "local_rank", "world_size")


@dataclass(frozen=True)
class TelemetryEvent:
    """An event of version 2 to 4. A counter that was not measured is None, never 0."""

    timestamp_ns: int
    event_type: str
    collector: str
    sampling_interval_ms: int
    pid: int
    host: str
    device_id: int
    allocator_allocated_bytes: int | None = None
    allocator_reserved_bytes: int | None = None
    allocator_active_bytes: int | None = None
    allocator_inactive_bytes: int | None = None
    allocator_change_bytes: int | None = None
    device_used_bytes: int | None = None
    device_free_bytes: int | None = None
    device_total_bytes: int | None = None
    context: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    session_id: str | None = None
    job_id: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    schema_version: int = 4

    def __post_init__(self) -> None:
        why = self._fault()
        if why is not None:
            raise ValueError(why)

    def _fault(self) -> str | None:
        if self.event_type not in EVENT_TYPES:
            return f"event_type must be one of {', '.join(sorted(EVENT_TYPES))}, got {self.event_type!r}"
        for name in ("timestamp_ns", "sampling_interval_ms"):
            if getattr(self, name) < 0:
                return f"{name} must not be negative, got {getattr(self, name)}"
        for name in ("device_used_bytes", "device_free_bytes"):
            part = getattr(self, name)
            if part is not None and self.device_total_bytes is not None and part > self.device_total_bytes:
                return f"{name} exceeds device_total_bytes"
        if self.rank is not None and self.world_size is not None and self.rank >= self.world_size:
            return "rank must be less than world_size"
        return None

    @property
    def is_alert(self) -> bool:
        return self.event_type in ALERTS

    @property
    def share_used(self) -> float | None:
        """The part of the device's memory that is used, 0 to 1."""
        if self.device_used_bytes is None or not self.device_total_bytes:
            return None
        return self.device_used_bytes / self.device_total_bytes

    @property
    def process_bytes(self) -> int | None:
        """What the tracked processes hold, where that is known."""
        held = self.metadata.get("process_bytes")
        return held if isinstance(held, int) else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: what its version requires is there, null where it is not known."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None or name not in _OPTIONAL}

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> TelemetryEvent:
        """Of version 2, 3 or 4. ValueError says which field is wrong."""
        version = record.get("schema_version")
        if version not in (2, 3, 4):
            raise ValueError(f"schema_version must be 2, 3 or 4, got {version!r}")
        known = {each.name: each for each in fields(TelemetryEvent)}
        if unknown := sorted(set(record) - set(known)):
            raise ValueError(f"unknown field {unknown[0]!r}")
        missing = [name for name in known if name not in record and name not in _OPTIONAL]
        if version > 2 and "session_id" not in record:
            missing.append("session_id")
        if missing:
            raise ValueError(f"{missing[0]} is missing (schema_version {version} requires it)")
        for name, value in record.items():
            _check(name, value, "int" in str(known[name].type))
        kind = TelemetryEventV2 if version == 2 else TelemetryEvent
        return kind(**record)


@dataclass(frozen=True)
class TelemetryEventV2(TelemetryEvent):
    """An event of version 2, in which the counters of allocator and device have to be known."""

    schema_version: int = 2

    def _fault(self) -> str | None:
        unknown = next((name for name in _REQUIRED if getattr(self, name) is None), None)
        if unknown is not None:
            return f"{unknown} must be known in version 2; use TelemetryEvent where it was not measured"
        return super()._fault()


def _check(name: str, value: Any, whole: bool) -> None:
    if name == "metadata":
        if not isinstance(value, Mapping):
            raise ValueError(f"metadata must be an object, got {value!r:.40}")
    elif value is not None and (isinstance(value, bool) or not isinstance(value, int if whole else str)):
        raise ValueError(f"{name} must be {'a whole number' if whole else 'a text'}, got {value!r:.40}")


def telemetry_event_from_record(record: Mapping[str, Any]) -> TelemetryEvent:
    """The event of a record; ValueError says what is wrong with it."""
    return TelemetryEvent.from_dict(record)


def telemetry_event_to_dict(event: TelemetryEvent) -> dict[str, Any]:
    """The record of an event."""
    return event.to_dict()


def validate_telemetry_record(record: Mapping[str, Any]) -> None:
    """Raises ValueError, with the field's name, if it is no event."""
    TelemetryEvent.from_dict(record)


def load_telemetry_events(path: str | os.PathLike[str]) -> list[TelemetryEvent]:
    """The events of a folder that was tracked into, or of a file of JSON of any version, read by `inferscope query`."""
    from ._child import answer

    text = answer(["query", "events", os.fspath(path), "--format", "json", "--limit", str(1 << 31)])
    try:
        return list(parsed(text))
    except ValueError as error:
        raise MemoryProfilingError(f"{os.fspath(path)}: {error}") from error


def parsed(text: str) -> Iterator[TelemetryEvent]:
    """The events of JSON lines."""
    for line in text.splitlines():
        yield TelemetryEvent.from_dict(json.loads(line))
