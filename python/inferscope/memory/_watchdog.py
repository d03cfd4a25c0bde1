"""Frees what can be freed when memory gets full, at most so often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ._collector import imported
from ._event import TelemetryEvent
from ._other_collectors import CPUCollector
from ._tracker import MemoryTracker

Policy = Callable[[], object]


def empty_framework_caches() -> None:
    """Gives unused blocks of PyTorch's allocator back to the driver, which waits for the device: seldom is better."""
    torch = imported("torch")
    if torch is None:
        return
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    mps = getattr(torch.backends, "mps", None)
    if mps is not None and mps.is_available():
        torch.mps.empty_cache()


def collect_garbage() -> None:
    """Walks all objects of Python, which takes a large program a second and more."""
    import gc

    gc.collect()


class MemoryWatchdog:
    """Listens to a tracker's alerts: `policies` are called at a warning, and those in `aggressive` besides at a
    critical one, in the tracker's thread."""

    def __init__(
        self,
        tracker: MemoryTracker,
        auto_cleanup: bool = True,
        policies: Mapping[str, Policy] | None = None,
        aggressive: Mapping[str, Policy] | None = None,
        min_interval: float = 30.0,
    ) -> None:
        if min_interval < 0:
            raise ValueError(f"min_interval must not be negative, got {min_interval}")
        self._tracker = tracker
        self._policies = dict(policies if policies is not None else {"empty_framework_caches": empty_framework_caches})
        self._aggressive = dict(aggressive if aggressive is not None else {"collect_garbage": collect_garbage})
        self._min_interval = min_interval
        self._lock = threading.Lock()
        self._next = 0.0
        self._stats: dict[str, Any] = {
            "cleanups": 0,
            "suppressed": 0,
            "errors": 0,
            "last_error": None,
            "last_freed_bytes": None,
        }
        if auto_cleanup:
            tracker.add_alert_callback(self._on_alert)

    def _on_alert(self, event: TelemetryEvent) -> None:
        if event.event_type in ("warning", "critical"):
            self._clean(event.event_type == "critical", limited=True)

    def force_cleanup(self, aggressive: bool = False) -> None:
        """Cleans up now, whenever the last time was."""
        self._clean(aggressive, limited=False)

    def _clean(self, aggressive: bool, limited: bool) -> None:
        with self._lock:
            if limited and time.monotonic() < self._next:
                self._stats["suppressed"] += 1
                return
            self._next = time.monotonic() + self._min_interval
            self._stats["cleanups"] += 1
        before = _resident()
        policies = {**self._policies, **(self._aggressive if aggressive else {})}
        failed = []
        for name, policy in policies.items():
            try:
                policy()
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {error}"[:500])
        after = _resident()
        freed = None if before is None or after is None else before - after
        with self._lock:
            self._stats["errors"] += len(failed)
            self._stats["last_error"] = failed[-1] if failed else self._stats["last_error"]
            self._stats["last_freed_bytes"] = freed
        told = {"policies": list(policies), "failed": failed, "freed_host_bytes": freed}
        self._tracker.record_event("cleanup", "aggressive" if aggressive else "normal", told)

    def get_cleanup_stats(self) -> dict[str, Any]:
        """How often it cleaned up, how often it was too soon, and what failed."""
        with self._lock:
            return dict(self._stats)

    def stop(self) -> None:
        """Listens no more."""
        self._tracker.remove_alert_callback(self._on_alert)


def _resident() -> int | None:
    collector = CPUCollector()
    return collector.sample().allocated_bytes if collector.is_available() else None
