"""Reads the collectors each time that the tracker sampled from outside, and tells it what they found. One that fails
again and again is asked no more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from . import _told
from ._collector import DeviceMemoryCollector
from ._devices import GPU_COLLECTORS
from ._errors import DeviceUnavailable

_MOST_FAILURES = 10


class FrameworkCounters:
    def __init__(self, collectors: Sequence[DeviceMemoryCollector] | None, interval: float) -> None:
        # Without any named: of every framework, whenever the program imports it.
        self._collectors = list(collectors) if collectors is not None else [kind() for kind in GPU_COLLECTORS]
        self._failures: dict[int, int] = {}
        # A burst of samples that waited for us is read once.
        self._spacing = interval / 2
        self._next = 0.0
        self.errors = 0
        self.last_error: str | None = None

    def extend(self, collectors: Sequence[DeviceMemoryCollector]) -> None:
        """Those of plugins."""
        self._collectors += [collector for collector in collectors if collector not in self._collectors]

    def due(self) -> None:
        """At the next sample they are read, however soon that is."""
        self._next = 0.0

    def read(self, tell: Callable[[bytes], object]) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._spacing
        for number, collector in enumerate(self._collectors):
            if self._failures.get(number, 0) >= _MOST_FAILURES:
                continue
            try:
                if not collector.is_available():
                    continue
                sample = collector.sample()
                tell(
                    _told.event(
                        "sample",
                        collector=collector.name(),
                        device_id=sample.device_id,
                        counters=sample.counters(),
                        metadata={
                            **sample.details,
                            **({} if sample.peak_bytes is None else {"allocator_peak_bytes": sample.peak_bytes}),
                        },
                    )
                )
                self._failures.pop(number, None)
            except DeviceUnavailable:
                continue  # It went away between the two questions.
            except Exception as error:
                self._failed(number, collector, error, tell)

    def _failed(
        self, number: int, collector: DeviceMemoryCollector, error: Exception, tell: Callable[[bytes], object]
    ) -> None:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {error}"[:500]
        self._failures[number] = self._failures.get(number, 0) + 1
        if self._failures[number] == _MOST_FAILURES:
            name = type(collector).__name__
            tell(_told.event("collector_degraded", collector=name, context=self.last_error))
