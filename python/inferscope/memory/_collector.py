"""Who reads memory that only a framework knows. A collector never imports its framework, never starts a device, never
waits for one, and says what it can measure; what it cannot is None, never 0."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ._errors import DeviceUnavailable


@dataclass(frozen=True)
class DeviceMemoryCapabilities:
    """What a collector can measure."""

    backend: str
    telemetry_collector: str
    sampling_source: str
    supports_allocator_allocated: bool = False
    supports_allocator_reserved: bool = False
    supports_allocator_active: bool = False
    supports_allocator_inactive: bool = False
    supports_device_used: bool = False
    supports_device_free: bool = False
    supports_device_total: bool = False
    supports_peak: bool = False
    #: What it cannot measure, and who can.
    limits: tuple[str, ...] = ()

    def to_metadata(self) -> dict[str, Any]:
        """As events carry it."""
        return {name: value for name, value in asdict(self).items() if name.startswith("supports_")}


@dataclass(frozen=True)
class DeviceMemorySample:
    """Bytes now. None: not measured."""

    device_id: int
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    active_bytes: int | None = None
    inactive_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    #: The most that was allocated since the process, or the program, last began to count.
    peak_bytes: int | None = None
    #: Other counters by their names in the framework.
    details: Mapping[str, int] = field(default_factory=dict)

    def counters(self) -> dict[str, int]:
        """Those that are known, as the tracker takes them."""
        names = ("allocated", "reserved", "active", "inactive", "used", "free", "total")
        found = {name: getattr(self, f"{name}_bytes") for name in names}
        return {name: value for name, value in found.items() if value is not None}


class DeviceMemoryCollector(ABC):
    """The memory of one device. A class of your own needs these four; `MemoryTracker(collectors=...)` takes it."""

    @abstractmethod
    def name(self) -> str:
        """How events name it."""

    @abstractmethod
    def unavailable(self) -> str | None:
        """Why there is nothing to read now, and what to do. None: there is."""

    @abstractmethod
    def capabilities(self) -> DeviceMemoryCapabilities:
        """What it can measure."""

    @abstractmethod
    def sample(self) -> DeviceMemorySample:
        """Memory now. DeviceUnavailable says why it cannot be read."""

    def quick(self) -> DeviceMemorySample:
        """What calls are measured by: `sample`, or less of it where that is faster."""
        return self.sample()

    def is_available(self) -> bool:
        return self.unavailable() is None

    def require(self) -> None:
        """Raises DeviceUnavailable where there is nothing to read."""
        why = self.unavailable()
        if why is not None:
            raise DeviceUnavailable(why)


def imported(name: str) -> Any:
    """The module, if the program has imported it to the end. Else None: it is not imported for this."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def device_index(device: Any, kinds: tuple[str, ...]) -> int | None:
    """1 of 1, "cuda:1" and torch.device("cuda:1"). None: the current one."""
    if device is None:
        return None
    if isinstance(device, bool) or not isinstance(device, (int, str)):
        device = str(device)
    if isinstance(device, int):
        if device < 0:
            raise ValueError(f"a device has a number of 0 or more, got {device}")
        return device
    kind, _, number = device.lower().partition(":")
    if kind not in kinds or (number and not number.isdigit()):
        raise ValueError(f"the device must be a number or {kinds[0]}:N, got {device!r}")
    return int(number) if number else None
