"""One run of the native tracker: the thread that hears it, and what it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _told
from ._child import Child
from ._errors import TrackingError
from ._event import TelemetryEvent

_START_S = 30.0
_STOP_S = 10.0
HOST = "inferscope.host"


class Session:
    """`heard` is called with every event, in a thread of its own."""

    def __init__(self, arguments: Sequence[str], heard: Callable[[TelemetryEvent], None]) -> None:
        self._heard = heard
        self._sending = threading.Lock()
        self._arrival = threading.Condition()
        self._latest: TelemetryEvent | None = None
        self.not_sent = 0
        self.unreadable = 0
        #: Events that came when nobody waited for them any more: callbacks took too long.
        self.not_delivered = 0
        self._given_up = False
        #: What the tracker said about itself in the end.
        self.last: Mapping[str, Any] = {}
        #: Why it ended without being asked to.
        self.ended: str | None = None
        self._child = Child(arguments)
        try:
            self._first = self._child.first(_START_S)
        except BaseException:
            self._child.close()
            raise
        self._thread = threading.Thread(target=self._follow, name="inferscope-memory", daemon=True)

    def begin(self) -> None:
        """From now on `heard` is called."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._given_up

    @property
    def is_this_thread(self) -> bool:
        return self._thread is threading.current_thread()

    def _follow(self) -> None:
        self._take(self._first)
        for line in self._child.lines():
            self._take(line)
        if not self.last:
            self.ended = self._child.why()
        # Here and nowhere else: nobody may read from a number that meanwhile means another file.
        with self._sending:
            self._child.close()
        with self._arrival:
            self._arrival.notify_all()

    def _take(self, line: bytes) -> None:
        # Nothing of ours may end this thread while the program relies on it.
        try:
            event = TelemetryEvent.from_dict(json.loads(line))
            if event.event_type == "stop":
                self.last = event.metadata
            if self._given_up:
                self.not_delivered += 1
                return
            self._heard(event)
            if event.event_type == "sample" and event.collector == HOST:
                with self._arrival:
                    self._latest = event
                    self._arrival.notify_all()
        except Exception:
            self.unreadable += 1

    def send(self, line: bytes) -> bool:
        """False: it has no room for it, or has ended."""
        with self._sending:
            sent = self._child.send(line)
            self.not_sent += not sent
            return sent

    def sample(self, timeout: float) -> TelemetryEvent:
        """A sample of host memory that was taken after this call."""
        asked, end = time.time_ns(), time.monotonic() + timeout
        self.send(_told.line({"do": "sample"}))
        with self._arrival:
            while self._latest is None or self._latest.timestamp_ns < asked:
                if not self.is_alive:
                    raise TrackingError(f"the tracker has ended: {self.ended or 'it was stopped'}")
                if not self._arrival.wait(min(max(end - time.monotonic(), 0), 0.1)) and time.monotonic() >= end:
                    raise TrackingError(f"the tracker gave no sample within {timeout:g} seconds")
            return self._latest

    def stop(self) -> None:
        """Returns when it has ended, after what it was told so far; where callbacks take too long, without the rest."""
        with self._sending:
            self._child.end()
        # A callback may stop the tracker that calls it: its thread ends by itself then.
        if not self.is_this_thread:
            self._thread.join(_STOP_S)
            self._given_up = self._thread.is_alive()

    def abandon(self) -> None:
        """In a forked child, where the thread does not exist and its locks may be held for ever."""
        self._sending = threading.Lock()
        self._child.close()
