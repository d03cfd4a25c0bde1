"""Tracks the memory of this program while it runs. The samples are taken by the native command from outside; here are
its callbacks, its phases, and the last events."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from . import _history, _told
from ._callbacks import Callbacks
from ._collector import DeviceMemoryCollector
from ._errors import TrackingError
from ._event import TelemetryEvent
from ._flight_recorder import OOMCapture, OOMFlightRecorder, OOMFlightRecorderConfig
from ._framework_counters import FrameworkCounters
from ._phases import PhaseHandle
from ._plugins import Plugins
from ._session import HOST, Session
from ._thresholds import Thresholds

_SHORTEST_INTERVAL_S = 0.01


class MemoryTracker:
    """Host memory of this program and its children, device memory by process, and what allocators of imported
    frameworks hold.

    with MemoryTracker(output="telemetry") as tracker:
        tracker.add_alert_callback(lambda event: print(event.event_type, event.share_used))
        with tracker.phase("load"):
            model = load()
    """

    def __init__(
        self,
        sampling_interval: float = 0.1,
        *,
        output: str | os.PathLike[str] | None = "inferscope-telemetry",
        max_events: int = 10_000,
        warning: float | None = 0.8,
        critical: float | None = 0.95,
        hold: float = 0.0,
        collectors: Sequence[DeviceMemoryCollector] | None = None,
        plugins: Plugins | None = None,
        enable_oom_flight_recorder: bool = False,
        oom_dump_dir: str | os.PathLike[str] = "oom_dumps",
        oom_max_dumps: int = 5,
        oom_max_total_mb: int = 256,
    ) -> None:
        if not isinstance(sampling_interval, (int, float)):
            raise TypeError(
                f"sampling_interval must be a number of seconds, got {sampling_interval!r:.40}; "
                "all devices are tracked, none is named"
            )
        if not _SHORTEST_INTERVAL_S <= sampling_interval <= 86_400:
            raise ValueError(f"sampling_interval must be between 0.01 and 86400 seconds, got {sampling_interval}")
        if not 0 <= hold <= 86_400:
            raise ValueError(f"hold must be between 0 and 86400 seconds, got {hold}")
        self.sampling_interval = sampling_interval
        self.output = None if output is None else os.path.abspath(output)
        self._thresholds = Thresholds(warning, critical)
        self._hold = hold
        self._history = _history.History(max_events)
        self._alerts: Callbacks[TelemetryEvent] = Callbacks()
        self._events: Callbacks[TelemetryEvent] = Callbacks()
        self._frameworks = FrameworkCounters(collectors, sampling_interval)
        self._plugins = plugins
        self.flight_recorder = OOMFlightRecorder(
            OOMFlightRecorderConfig(
                enabled=enable_oom_flight_recorder,
                dump_dir=oom_dump_dir,
                buffer_size=min(max_events, 3_000),
                max_dumps=oom_max_dumps,
                max_total_mb=oom_max_total_mb,
            )
        )
        self._session: Session | None = None
        # Who starts and stops.
        self._control = threading.RLock()
        _all.add(self)

    @property
    def is_tracking(self) -> bool:
        session = self._session
        return session is not None and session.is_alive

    def start_tracking(self) -> None:
        """Starts it. TrackingError says why that is impossible, and what to do. Nothing happens where it runs
        already."""
        if self.is_tracking:
            return
        with self._control:
            if self.is_tracking:
                return
            if self._plugins is None:
                self._plugins = Plugins.installed()
            self._frameworks.extend(self._plugins.collectors())
            self._session = Session(self._arguments(), self._heard)
            self._session.begin()

    def _arguments(self) -> list[str]:
        keeps = ["monitor"] if self.output is None else ["track", f"--output={self.output}"]
        return [
            *keeps,
            "--stream",
            "--quiet",
            f"--pid={os.getpid()}",
            f"--interval={self.sampling_interval!r}",
            f"--hold={float(self._hold)!r}",
            *self._thresholds.flags(),
        ]

    def stop_tracking(self) -> None:
        """Returns when everything that was said before is in the files. Stopping twice does nothing."""
        session = self._session
        if session is not None and session.is_this_thread:
            session.stop()  # In a callback, for which another thread that stops it may wait.
            return
        with self._control:
            if self._session is not None:
                self._session.stop()

    def __enter__(self) -> MemoryTracker:
        self.start_tracking()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.handle_exception(error)
        self.stop_tracking()

    def _after_fork(self) -> None:
        """In the child of a fork: it is the parent that is tracked. Locks that its threads held are replaced."""
        self._control = threading.RLock()
        self._history.after_fork()
        self.flight_recorder.after_fork()
        session, self._session = self._session, None
        if session is not None:
            session.abandon()

    def _heard(self, event: TelemetryEvent) -> None:
        self._history.add(event)
        if self.flight_recorder.config.enabled:
            self.flight_recorder.record_event(event.to_dict())
        if event.event_type == "sample":
            session = self._session
            if event.collector == HOST and session is not None:
                self._frameworks.read(session.send)
            if self._plugins is not None:
                self._plugins.on_memory_snapshot(event)
        self._events.call(event)
        if event.is_alert:
            self._alerts.call(event)

    def _send(self, line: bytes) -> bool:
        session = self._session
        return session is not None and session.send(line)

    def sample_now(self, timeout: float = 5.0) -> TelemetryEvent:
        """A sample of host memory that was taken after this call; devices and frameworks are sampled, too, and found in
        `get_events`. TrackingError where there is none in time."""
        session = self._session
        if session is None or not session.is_alive:
            raise TrackingError("nothing is tracked: call start_tracking() first")
        if session.is_this_thread:
            raise TrackingError("a callback cannot wait for a sample: it is called by the thread that receives them")
        self._frameworks.due()
        return session.sample(timeout)

    def record_event(
        self,
        event_type: str,
        context: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **where: Any,
    ) -> bool:
        """An event of the program's own, kept with the others. False: nothing is tracked, or there is no room for
        it."""
        return self._send(_told.event(event_type, context=context, metadata=metadata, **where))

    def enter_phase(self, name: str, *, metadata: Mapping[str, Any] | None = None) -> PhaseHandle:
        """Begins a phase; `close` ends it."""
        return PhaseHandle(self.record_event, name, metadata)

    def phase(self, name: str, *, metadata: Mapping[str, Any] | None = None) -> PhaseHandle:
        """The same for a `with` statement."""
        return self.enter_phase(name, metadata=metadata)

    def set_threshold(self, threshold_name: str, value: float | None) -> None:
        """`warning` or `critical`, as a share from 0 to 1. ValueError where both contradict each other."""
        with self._control:
            self._thresholds = self._thresholds.changed(threshold_name, value)
            now = self._thresholds
        self._send(_told.line({"do": "thresholds", "warning": now.warning, "critical": now.critical}))

    # What is asked of it.

    def add_alert_callback(self, callback: Callable[[TelemetryEvent], Any]) -> None:
        """Called with each alert, in the tracker's thread."""
        self._alerts.add(callback)

    def remove_alert_callback(self, callback: Callable[[TelemetryEvent], Any]) -> None:
        self._alerts.remove(callback)

    def add_event_callback(self, callback: Callable[[TelemetryEvent], Any]) -> None:
        """Called with every event, in the tracker's thread."""
        self._events.add(callback)

    def get_events(
        self, event_type: str | None = None, last_n: int | None = None, since: float | None = None
    ) -> list[TelemetryEvent]:
        """The last events, at most `max_events`; `since` is a time as of `time.time()`."""
        return self._history.events(event_type, last_n, since)

    def get_alerts(self, last_n: int | None = None) -> list[TelemetryEvent]:
        """The last alerts, at most 1000."""
        return self._history.alerts(last_n)

    def get_memory_timeline(self, interval: float = 1.0) -> dict[str, list[float]]:
        """`timestamps`, `process` (host memory of this program) and `allocated` (by frameworks), one value an
        interval."""
        return _history.timeline(self._history.events(), interval)

    def get_statistics(self) -> dict[str, Any]:
        """What was counted, and what was lost and why."""
        session = self._session
        last = {} if session is None else session.last
        names = ("events_written", "events_lost", "why_lost", "events_not_streamed", "requests_refused")
        return {
            **self._history.statistics(),
            "is_tracking": self.is_tracking,
            "ended": None if session is None else session.ended,
            "callback_errors": self._alerts.errors + self._events.errors,
            "last_callback_error": self._alerts.last_error or self._events.last_error,
            "collector_errors": self._frameworks.errors,
            "last_collector_error": self._frameworks.last_error,
            "plugin_errors": 0 if self._plugins is None else self._plugins.errors,
            "not_sent": 0 if session is None else session.not_sent,
            "unreadable": 0 if session is None else session.unreadable,
            "not_delivered": 0 if session is None else session.not_delivered,
            **{name: last.get(name) for name in names},
        }

    def export_events(self, filename: str | os.PathLike[str], format: str = "csv") -> None:
        """Writes the last events as `csv`, `json` or `jsonl`; all of them are in `output`."""
        _history.export(self._history.events(), filename, format)

    def clear_events(self) -> None:
        """Forgets the last events and counts; files stay."""
        self._history.clear()

    # Out of memory.

    def handle_exception(
        self, exc: BaseException, context: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> str | None:
        """Where the exception is one of memory: an event, and a bundle if the flight recorder is enabled. Returns its
        path."""
        return OOMCapture(self.flight_recorder, self.record_event, context or "runtime", metadata).handle(exc)

    def capture_oom(self, context: str = "runtime", metadata: Mapping[str, Any] | None = None) -> OOMCapture:
        """`with tracker.capture_oom("inference"):` does the same for what is inside, and lets the exception pass."""
        return OOMCapture(self.flight_recorder, self.record_event, context, metadata)


_all: weakref.WeakSet[MemoryTracker] = weakref.WeakSet()


def _in_child() -> None:
    for tracker in list(_all):
        tracker._after_fork()


def _at_exit() -> None:
    for tracker in list(_all):
        tracker.stop_tracking()


os.register_at_fork(after_in_child=_in_child)
# While there are threads, so that the last events are in the files when the program has ended.
atexit.register(_at_exit)
