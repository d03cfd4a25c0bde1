"""What goes wrong in a way that the program can act on."""

from __future__ import annotations


class MemoryProfilingError(RuntimeError):
    """Base of the errors of `inferscope.memory`. The message says what happened, why, and what to do."""


class DeviceUnavailable(MemoryProfilingError):
    """There is no such device, or its framework has not started it."""


class TrackingError(MemoryProfilingError):
    """The tracker could not be started."""
