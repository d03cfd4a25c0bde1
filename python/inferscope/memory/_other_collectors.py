"""Memory of TensorFlow's and JAX's allocators, and of this process on the host."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ._collector import (
    DeviceMemoryCapabilities,
    DeviceMemoryCollector,
    DeviceMemorySample,
    device_index,
    imported,
)
from ._errors import DeviceUnavailable


class TensorFlowDeviceCollector(DeviceMemoryCollector):
    """TensorFlow's allocator on a GPU: what tensors take now, and their peak."""

    def __init__(self, device: Any = None) -> None:
        text = device.lower().lstrip("/").removeprefix("device:") if isinstance(device, str) else device
        self._index = device_index(text, ("gpu", "cuda")) or 0

    def name(self) -> str:
        return "inferscope.tensorflow"

    def unavailable(self) -> str | None:
        if imported("tensorflow") is None:
            return "TensorFlow is not imported in this process: import tensorflow first"
        # Asking TensorFlow itself would start its devices, and take their memory.
        context = getattr(imported("tensorflow.python.eager.context"), "_context", None)
        if not getattr(context, "_initialized", False):
            return "TensorFlow has not started its devices in this process: run an operation first"
        if self._index >= len(imported("tensorflow").config.list_logical_devices("GPU")):
            return f"TensorFlow has no GPU:{self._index} here: use CPUMemoryProfiler for host memory"
        return None

    def capabilities(self) -> DeviceMemoryCapabilities:
        return DeviceMemoryCapabilities(
            backend="tensorflow",
            telemetry_collector=self.name(),
            sampling_source="tf.config.experimental.get_memory_info",
            supports_allocator_allocated=True,
            supports_peak=True,
            limits=("what its allocator has reserved: TensorFlow does not say; `inferscope track` samples the device",),
        )

    def sample(self) -> DeviceMemorySample:
        self.require()
        try:
            info = imported("tensorflow").config.experimental.get_memory_info(f"GPU:{self._index}")
        except (RuntimeError, ValueError) as error:
            raise DeviceUnavailable(f"TensorFlow does not tell the memory of GPU:{self._index}: {error}") from error
        return DeviceMemorySample(
            device_id=self._index, allocated_bytes=int(info["current"]), peak_bytes=int(info["peak"])
        )


class JAXDeviceCollector(DeviceMemoryCollector):
    """JAX's allocator on one of its local devices."""

    def __init__(self, device: Any = None) -> None:
        index = device if isinstance(device, (int, str, type(None))) else getattr(device, "local_hardware_id", None)
        self._index = device_index(index, ("gpu", "cuda", "rocm", "tpu")) or 0

    def name(self) -> str:
        return "inferscope.jax"

    def unavailable(self) -> str | None:
        if imported("jax") is None:
            return "JAX is not imported in this process: import jax first"
        bridge = imported("jax._src.xla_bridge")
        # Asking for devices would start them, and take most of their memory.
        if bridge is None or not (getattr(bridge, "_backends", None) or {}):
            return "JAX has not started its devices in this process: run a computation first"
        devices = imported("jax").local_devices()
        if self._index >= len(devices):
            return f"there is no JAX device {self._index}: this process has {len(devices)}, from 0"
        if not devices[self._index].memory_stats():
            kind = devices[self._index].platform
            return f"JAX counts no memory on {kind} devices: use CPUMemoryProfiler for host memory"
        return None

    def capabilities(self) -> DeviceMemoryCapabilities:
        return DeviceMemoryCapabilities(
            backend="jax",
            telemetry_collector=self.name(),
            sampling_source="jax.Device.memory_stats",
            supports_allocator_allocated=True,
            supports_allocator_reserved=True,
            supports_device_total=True,
            supports_peak=True,
            limits=("what other libraries and processes hold: `inferscope track` samples the device",),
        )

    def sample(self) -> DeviceMemorySample:
        self.require()
        stats = imported("jax").local_devices()[self._index].memory_stats()
        return DeviceMemorySample(
            device_id=self._index,
            allocated_bytes=stats.get("bytes_in_use"),
            reserved_bytes=stats.get("pool_bytes", stats.get("bytes_reserved")),
            # What JAX may take of the device, which is what it can run out of.
            total_bytes=stats.get("bytes_limit"),
            peak_bytes=stats.get("peak_bytes_in_use"),
        )


class CPUCollector(DeviceMemoryCollector):
    """Resident memory of this process, and how full the machine is."""

    def name(self) -> str:
        return "inferscope.process"

    def unavailable(self) -> str | None:
        return None if os.path.exists("/proc/self/statm") else "/proc is not mounted: host memory cannot be read"

    def capabilities(self) -> DeviceMemoryCapabilities:
        return DeviceMemoryCapabilities(
            backend="cpu",
            telemetry_collector=self.name(),
            sampling_source="/proc/self/status",
            supports_allocator_allocated=True,
            supports_device_used=True,
            supports_device_free=True,
            supports_device_total=True,
            supports_peak=True,
            limits=("what Python objects take, by line: use memray or tracemalloc for that",),
        )

    def quick(self) -> DeviceMemorySample:
        """Without the machine's memory, which takes the kernel longer to count than the process's own."""
        status = _read("/proc/self/status")
        resident = _kilobytes(status, b"VmRSS:")
        if resident is None:
            raise DeviceUnavailable(self.unavailable() or "/proc/self/status does not tell this process's memory")
        peak, virtual = _kilobytes(status, b"VmHWM:"), _kilobytes(status, b"VmSize:")
        return DeviceMemorySample(
            device_id=-1,
            allocated_bytes=resident,
            # The kernel counts the peak less often.
            peak_bytes=None if peak is None else max(peak, resident),
            details={} if virtual is None else {"vms": virtual},
        )

    def sample(self) -> DeviceMemorySample:
        machine = _read("/proc/meminfo")
        total, free = _kilobytes(machine, b"MemTotal:"), _kilobytes(machine, b"MemAvailable:")
        return replace(
            self.quick(),
            used_bytes=total - free if total is not None and free is not None else None,
            free_bytes=free,
            total_bytes=total,
        )


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            # As a line of its own, so that the first is found as the others are.
            return b"\n" + file.read()
    except OSError:
        return b""


def _kilobytes(text: bytes, name: bytes) -> int | None:
    """The number of kilobytes behind a name, in bytes."""
    _, found, rest = text.partition(b"\n" + name)
    words = rest[:64].split(None, 2)
    return int(words[0]) * 1024 if found and len(words) > 1 and words[1] == b"kB" else None
