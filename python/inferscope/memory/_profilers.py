"""Profilers: what calls and parts of a program take of a GPU's memory, of the host's, of TensorFlow's. They return
what the function returned, unchanged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ._collector import DeviceMemoryCollector
from ._devices import build_device_memory_collector
from ._measure import Measurement, MemorySnapshot, ProfileResult, Results
from ._other_collectors import CPUCollector, TensorFlowDeviceCollector
from ._tracker import MemoryTracker
from ._wrap import wrapped

Answer = TypeVar("Answer")
Function = TypeVar("Function", bound=Callable[..., Any])


class _Profiler:
    """What the profilers share; each brings its collector."""

    def __init__(self, collector: DeviceMemoryCollector, max_results: int) -> None:
        collector.require()
        self.collector = collector
        self._results = Results(max_results)
        self._control = threading.Lock()
        self._tracker: MemoryTracker | None = None

    @property
    def results(self) -> list[ProfileResult]:
        """The last results, oldest first."""
        return self._results.all()

    @property
    def last_result(self) -> ProfileResult | None:
        found = self._results.all()
        return found[-1] if found else None

    def profile_function(self, func: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """Calls it and returns what it returned; the numbers are in `last_result`."""
        name = getattr(func, "__qualname__", type(func).__name__)
        with Measurement(self.collector, self._results, name):
            return func(*args, **kwargs)

    def profile_context(self, name: str = "context") -> Measurement:
        """`with profiler.profile_context("load") as load:`; afterwards `load.result` has the numbers."""
        return Measurement(self.collector, self._results, name)

    def decorate(self, function: Function, name: str | None = None) -> Function:
        """The function with each call measured: plain, coroutine or generator."""
        return wrapped(function, lambda: self.profile_context(name or function.__qualname__))

    def take_snapshot(self, operation: str = "snapshot") -> MemorySnapshot:
        """Memory now."""
        return MemorySnapshot.of(self.collector.sample(), operation)

    def start_monitoring(self, interval: float = 0.1, output: str | None = None) -> MemoryTracker:
        """Samples in the background until `stop_monitoring`."""
        with self._control:
            if self._tracker is None or not self._tracker.is_tracking:
                self._tracker = MemoryTracker(interval, output=output, collectors=[self.collector])
                self._tracker.start_tracking()
            return self._tracker

    def stop_monitoring(self) -> None:
        with self._control:
            if self._tracker is not None:
                self._tracker.stop_tracking()

    def get_summary(self) -> dict[str, Any]:
        """Calls, time and memory by name; and what was monitored."""
        tracker = self._tracker
        return {
            "backend": self.collector.capabilities().backend,
            "functions": dict(self._results.summary()),
            "monitoring": None if tracker is None else tracker.get_statistics(),
        }

    def clear_results(self) -> None:
        self._results.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_monitoring()


class GPUMemoryProfiler(_Profiler):
    """The allocator of a GPU: "cuda:0", "rocm", "mps", or None for the one that runs. DeviceUnavailable says why
    there is none."""

    def __init__(self, device: Any = None, max_results: int = 10_000) -> None:
        if str(device).lower() == "cpu":
            raise ValueError("the CPU is no GPU: use CPUMemoryProfiler")
        super().__init__(build_device_memory_collector(device), max_results)

    def __enter__(self) -> GPUMemoryProfiler:
        return self


class CPUMemoryProfiler(_Profiler):
    """Resident memory of this process."""

    def __init__(self, max_results: int = 10_000) -> None:
        super().__init__(CPUCollector(), max_results)

    def __enter__(self) -> CPUMemoryProfiler:
        return self


class TFMemoryProfiler(_Profiler):
    """TensorFlow's allocator on a GPU. DeviceUnavailable says why it cannot be read."""

    def __init__(self, device: str | None = None, max_results: int = 10_000) -> None:
        super().__init__(TensorFlowDeviceCollector(device), max_results)

    def __enter__(self) -> TFMemoryProfiler:
        return self
