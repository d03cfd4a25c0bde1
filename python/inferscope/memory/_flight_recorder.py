"""Keeps the last events, and writes them as a bundle when memory runs out."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _bundle
from ._errors import MemoryProfilingError
from ._oom import OOMExceptionClassification, classify_oom_exception

_LONGEST_MESSAGE = 4000
#: On an exception: its bundle, or nothing where none was written.
_HANDLED = "_inferscope_bundle"


@dataclass(frozen=True)
class OOMFlightRecorderConfig:
    """Where bundles go, and how much of them is kept."""

    enabled: bool = False
    dump_dir: str | os.PathLike[str] = "oom_dumps"
    buffer_size: int = 10_000
    max_dumps: int = 5
    max_total_mb: int = 256

    def __post_init__(self) -> None:
        for name in ("buffer_size", "max_dumps", "max_total_mb"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


class OOMFlightRecorder:
    """Bounded; safe to use from several threads."""

    def __init__(self, config: OOMFlightRecorderConfig | None = None) -> None:
        self.config = config or OOMFlightRecorderConfig(enabled=True)
        self._lock = threading.Lock()
        self._events: deque[dict[str, Any]] = deque(maxlen=self.config.buffer_size)
        #: Why the last bundle could not be written.
        self.last_error: str | None = None

    def record_event(self, event: Mapping[str, Any]) -> None:
        if self.config.enabled:
            with self._lock:
                self._events.append(dict(event))

    def snapshot_events(self) -> list[dict[str, Any]]:
        """Oldest first."""
        with self._lock:
            return [dict(event) for event in self._events]

    def clear(self) -> None:
        with self._lock:
            self._events.clear()

    def after_fork(self) -> None:
        """Another thread may have held the lock."""
        self._lock = threading.Lock()

    def dump(
        self,
        *,
        reason: str,
        exception: BaseException | None = None,
        context: str | None = None,
        backend: str = "host",
        metadata: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Writes a bundle and returns its folder. None: it is not enabled, or the disk does not take it
        (`last_error`): a program that is out of memory is not to fail of that, too."""
        if not self.config.enabled:
            return None
        try:
            place = _bundle.write(
                Path(self.config.dump_dir),
                backend="".join(letter if letter.isalnum() else "-" for letter in backend)[:40] or "host",
                reason=reason,
                events=self.snapshot_events(),
                metadata={"exception": _described(exception), "context": context, "custom": dict(metadata or {})},
                max_dumps=self.config.max_dumps,
                max_total_mb=self.config.max_total_mb,
            )
        except (OSError, ValueError, TypeError) as error:
            self.last_error = f"the bundle could not be written to {self.config.dump_dir}: {error}"
            return None
        return os.fspath(place)

    def handle(
        self, exc: BaseException, context: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> str | None:
        """Writes a bundle if memory ran out."""
        found = classify_oom_exception(exc)
        if not found.is_oom:
            return None
        return self.dump(
            reason=found.reason or "out_of_memory",
            exception=found.exception,
            context=context,
            backend=backend_of(found),
            metadata=metadata,
        )


def backend_of(found: OOMExceptionClassification) -> str:
    reason = (found.reason or "").lower()
    if found.kind == "host":
        return "host"
    known = {"hip": "rocm", "mps": "mps", "tensorflow": "tensorflow", "jax": "jax"}
    return next((backend for word, backend in known.items() if word in reason), "cuda")


def _described(exc: BaseException | None) -> dict[str, str] | None:
    if exc is None:
        return None
    try:
        message = str(exc)[:_LONGEST_MESSAGE]
    except Exception:
        message = "(its message cannot be read)"
    return {"type": type(exc).__name__, "module": type(exc).__module__, "message": message}


class OOMCapture:
    """A `with` statement that lets every exception pass, and keeps what those of memory say."""

    def __init__(
        self,
        recorder: OOMFlightRecorder,
        record: Callable[..., object],
        context: str,
        metadata: Mapping[str, Any] | None,
    ) -> None:
        self._recorder, self._record = recorder, record
        self._context, self._metadata = context, metadata
        #: The bundle's folder, if one was written.
        self.bundle: str | None = None

    def handle(self, exc: BaseException) -> str | None:
        found = classify_oom_exception(exc)
        if found.is_oom and found.exception is not None:
            # It passes through every statement around it: one death is one bundle.
            known = getattr(found.exception, _HANDLED, None)
            if known is not None:
                self.bundle = known or None
                return self.bundle
            told = {"reason": "out_of_memory", "exception": found.reason, **(self._metadata or {})}
            self._record("error", self._context, told)
            self.bundle = self._recorder.handle(exc, self._context, self._metadata)
            with suppress(AttributeError, TypeError):
                setattr(found.exception, _HANDLED, self.bundle or "")
        return self.bundle

    def __enter__(self) -> OOMCapture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.handle(error)


@contextmanager
def flight_recorder(
    dump_dir: str | os.PathLike[str] = "oom_dumps",
    *,
    context: str = "runtime",
    sampling_interval: float = 0.1,
    output: str | os.PathLike[str] | None = None,
) -> Iterator[OOMFlightRecorder]:
    """Tracks what is inside, and leaves a bundle if memory runs out there. The exception passes. Without the command
    it keeps no events, and still writes the bundle."""
    from ._tracker import MemoryTracker

    tracker = MemoryTracker(sampling_interval, output=output, enable_oom_flight_recorder=True, oom_dump_dir=dump_dir)
    try:
        tracker.start_tracking()
    except MemoryProfilingError as error:
        tracker.flight_recorder.last_error = str(error)
    try:
        with tracker.capture_oom(context):
            yield tracker.flight_recorder
    finally:
        tracker.stop_tracking()
