"""Memory of PyTorch's caching allocators: CUDA, ROCm and MPS. Reading their statistics asks no device anything."""

from __future__ import annotations

from typing import Any

from ._collector import (
    DeviceMemoryCapabilities,
    DeviceMemoryCollector,
    DeviceMemorySample,
    device_index,
    imported,
)

_NOT_IMPORTED = "PyTorch is not imported in this process: import torch first, or use CPUMemoryProfiler for host memory"
_OUTSIDE = (
    "memory of the driver, of other libraries and of other processes: `inferscope track` samples the whole device"
)


class CUDADeviceCollector(DeviceMemoryCollector):
    """PyTorch's allocator on an NVIDIA GPU. `device_totals` also asks the driver how full the whole device is."""

    backend = "cuda"
    _kinds: tuple[str, ...] = ("cuda",)

    def __init__(self, device: Any = None, device_totals: bool = False) -> None:
        self._index = device_index(device, self._kinds)
        self._device_totals = device_totals

    def name(self) -> str:
        return f"inferscope.torch.{self.backend}"

    def unavailable(self) -> str | None:
        torch = imported("torch")
        if torch is None:
            return _NOT_IMPORTED
        cuda = getattr(torch, "cuda", None)
        is_hip = getattr(getattr(torch, "version", None), "hip", None) is not None
        if is_hip != (self.backend == "rocm"):
            return f"this PyTorch is built for {'ROCm' if is_hip else 'CUDA or the CPU'}, not for {self.backend}"
        # Not `is_available`, which starts the driver.
        if cuda is None or not cuda.is_initialized():
            return (
                f"PyTorch has not started {self.backend.upper()} in this process: create a tensor on the GPU first "
                "(`python -c 'import torch; print(torch.cuda.is_available())'` says whether it can), or use "
                "CPUMemoryProfiler for host memory"
            )
        if self._index is not None and self._index >= cuda.device_count():
            return f"there is no GPU {self._index}: this process sees {cuda.device_count()} of them, from 0"
        return None

    def capabilities(self) -> DeviceMemoryCapabilities:
        totals = self._device_totals
        return DeviceMemoryCapabilities(
            backend=self.backend,
            telemetry_collector=self.name(),
            sampling_source="torch.cuda.memory_stats",
            supports_allocator_allocated=True,
            supports_allocator_reserved=True,
            supports_allocator_active=True,
            supports_allocator_inactive=True,
            supports_device_used=totals,
            supports_device_free=totals,
            supports_device_total=True,
            supports_peak=True,
            limits=() if totals else (_OUTSIDE,),
        )

    def sample(self) -> DeviceMemorySample:
        self.require()
        cuda = imported("torch").cuda
        index = cuda.current_device() if self._index is None else self._index
        stats = cuda.memory_stats(index)
        used = free = None
        total = int(cuda.get_device_properties(index).total_memory)
        if self._device_totals:
            free, total = (int(part) for part in cuda.mem_get_info(index))
            used = total - free
        details = {name: int(stats[name]) for name in ("num_alloc_retries", "num_ooms") if name in stats}
        return DeviceMemorySample(
            device_id=index,
            allocated_bytes=stats.get("allocated_bytes.all.current"),
            reserved_bytes=stats.get("reserved_bytes.all.current"),
            active_bytes=stats.get("active_bytes.all.current"),
            inactive_bytes=stats.get("inactive_split_bytes.all.current"),
            used_bytes=used,
            free_bytes=free,
            total_bytes=total,
            peak_bytes=stats.get("allocated_bytes.all.peak"),
            details=details,
        )


class ROCmDeviceCollector(CUDADeviceCollector):
    """The same on an AMD GPU, which PyTorch calls `cuda`, too."""

    backend = "rocm"
    _kinds = ("cuda", "rocm", "hip")


class MPSDeviceCollector(DeviceMemoryCollector):
    """PyTorch's allocator on Metal: what tensors take, and what the driver gave. It counts no peak and no active
    blocks."""

    def __init__(self, device: Any = None) -> None:
        if device_index(device, ("mps",)) not in (None, 0):
            raise ValueError(f"there is one MPS device, mps:0, got {device!r}")

    def name(self) -> str:
        return "inferscope.torch.mps"

    def unavailable(self) -> str | None:
        torch = imported("torch")
        if torch is None:
            return _NOT_IMPORTED
        mps = getattr(getattr(torch, "backends", None), "mps", None)
        if mps is None or not mps.is_available():
            return "PyTorch has no MPS device here (Metal needs macOS): use CPUMemoryProfiler for host memory"
        return None

    def capabilities(self) -> DeviceMemoryCapabilities:
        return DeviceMemoryCapabilities(
            backend="mps",
            telemetry_collector=self.name(),
            sampling_source="torch.mps.current_allocated_memory",
            supports_allocator_allocated=True,
            supports_allocator_reserved=True,
            supports_device_total=True,
            limits=("active and inactive blocks and the peak: Metal's allocator does not count them",),
        )

    def sample(self) -> DeviceMemorySample:
        self.require()
        mps = imported("torch").mps
        recommended = getattr(mps, "recommended_max_memory", None)
        return DeviceMemorySample(
            device_id=0,
            allocated_bytes=int(mps.current_allocated_memory()),
            reserved_bytes=int(mps.driver_allocated_memory()),
            total_bytes=int(recommended()) if recommended is not None else None,
        )
