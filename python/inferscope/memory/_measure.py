"""What a piece of a program took: memory before and after it, and the peak between, where that can be known."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from ._collector import DeviceMemoryCollector, DeviceMemorySample


@dataclass(frozen=True)
class MemorySnapshot:
    """Memory at one moment."""

    timestamp: float
    operation: str
    allocated_memory: int | None
    reserved_memory: int | None
    peak_memory: int | None
    device_id: int

    @classmethod
    def of(cls, sample: DeviceMemorySample, operation: str) -> MemorySnapshot:
        return cls(
            time.time(),
            operation,
            sample.allocated_bytes,
            sample.reserved_bytes,
            sample.peak_bytes,
            sample.device_id,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ProfileResult:
    """One call, or one `with` statement."""

    function_name: str
    execution_time: float
    memory_before: MemorySnapshot
    memory_after: MemorySnapshot
    #: Whether it ended by an exception.
    failed: bool = False

    def memory_diff(self) -> int | None:
        """What is held now and was not before; negative where it freed more."""
        before, after = self.memory_before.allocated_memory, self.memory_after.allocated_memory
        return None if before is None or after is None else after - before

    @property
    def peak_is_exact(self) -> bool:
        """Whether the framework's peak rose in it. If it did not, the peak was somewhere below an earlier one."""
        before, after = self.memory_before.peak_memory, self.memory_after.peak_memory
        return before is not None and after is not None and after > before

    def peak_memory_usage(self) -> int | None:
        """The most that was allocated; at least that, where `peak_is_exact` is False."""
        if self.peak_is_exact:
            return self.memory_after.peak_memory
        ends = (self.memory_before.allocated_memory, self.memory_after.allocated_memory)
        known = [end for end in ends if end is not None]
        return max(known) if known else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "function_name": self.function_name,
            "execution_time": self.execution_time,
            "memory_before": self.memory_before.to_dict(),
            "memory_after": self.memory_after.to_dict(),
            "memory_diff": self.memory_diff(),
            "peak_memory": self.peak_memory_usage(),
            "peak_is_exact": self.peak_is_exact,
            "failed": self.failed,
        }


class Results:
    """The last results, and what all of them come to by name. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"max_results must be at least 1, got {most}")
        self._lock = threading.Lock()
        self._kept: deque[ProfileResult] = deque(maxlen=most)
        self._by_name: dict[str, dict[str, Any]] = {}
        self._most = most

    def add(self, result: ProfileResult) -> None:
        with self._lock:
            self._kept.append(result)
            name = result.function_name if len(self._by_name) < self._most else "(others)"
            name = result.function_name if result.function_name in self._by_name else name
            entry = self._by_name.setdefault(
                name, {"call_count": 0, "failed": 0, "total_time": 0.0, "memory_diff": 0, "peak_memory": None}
            )
            entry["call_count"] += 1
            entry["failed"] += result.failed
            entry["total_time"] += result.execution_time
            entry["memory_diff"] += result.memory_diff() or 0
            peaks = [peak for peak in (entry["peak_memory"], result.peak_memory_usage()) if peak is not None]
            entry["peak_memory"] = max(peaks, default=None)

    def all(self) -> list[ProfileResult]:
        with self._lock:
            return list(self._kept)

    def summary(self) -> Mapping[str, dict[str, Any]]:
        with self._lock:
            return {name: dict(entry) for name, entry in self._by_name.items()}

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._by_name.clear()


class Measurement:
    """A `with` statement that measures what is inside. What cannot be read then is missing; the program goes on."""

    def __init__(self, collector: DeviceMemoryCollector, results: Results, name: str) -> None:
        self._collector, self._results, self._name = collector, results, name
        self.result: ProfileResult | None = None

    def _look(self) -> MemorySnapshot:
        try:
            sample = self._collector.quick()
        except Exception:
            sample = DeviceMemorySample(device_id=-1)
        return MemorySnapshot.of(sample, self._name)

    def __enter__(self) -> Measurement:
        self._before, self._began = self._look(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.perf_counter() - self._began
        self.result = ProfileResult(self._name, took, self._before, self._look(), error is not None)
        self._results.add(self.result)
