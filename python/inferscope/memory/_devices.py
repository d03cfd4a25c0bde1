"""Which collector fits what the program has imported, and what is known of its GPUs."""

from __future__ import annotations

import json
from typing import Any

from ._child import answer
from ._collector import DeviceMemoryCollector, imported
from ._errors import DeviceUnavailable, MemoryProfilingError
from ._other_collectors import CPUCollector, JAXDeviceCollector, TensorFlowDeviceCollector
from ._torch_collectors import CUDADeviceCollector, MPSDeviceCollector, ROCmDeviceCollector

GPU_COLLECTORS: tuple[type[Any], ...] = (
    CUDADeviceCollector,
    ROCmDeviceCollector,
    MPSDeviceCollector,
    TensorFlowDeviceCollector,
    JAXDeviceCollector,
)


def detect_torch_runtime_backend() -> str:
    """`cuda`, `rocm` or `mps` where PyTorch runs on it now; else `cpu`."""
    for kind in GPU_COLLECTORS[:3]:
        if kind().is_available():
            return "mps" if kind is MPSDeviceCollector else str(kind.backend)
    return "cpu"


def available_collectors() -> list[DeviceMemoryCollector]:
    """Those that have something to read now, of frameworks that the program has imported."""
    made: list[DeviceMemoryCollector] = [kind() for kind in GPU_COLLECTORS]
    return [collector for collector in made if collector.is_available()]


def build_device_memory_collector(device: Any = None) -> DeviceMemoryCollector:
    """The collector of a device: "cuda:0", "rocm", "mps", "cpu", a number, or None for the first that runs.
    DeviceUnavailable says why there is none."""
    kind = "" if device is None or isinstance(device, int) else str(device).lower().partition(":")[0]
    if kind == "cpu":
        return CPUCollector()
    if kind == "mps":
        found: DeviceMemoryCollector = MPSDeviceCollector(device)
    elif kind in ("rocm", "hip") or (kind in ("", "cuda") and _is_hip()):
        found = ROCmDeviceCollector(device)
    elif kind == "" and device is None:
        return _first()
    elif kind in ("", "cuda"):
        found = CUDADeviceCollector(device)
    else:
        raise ValueError(f"unknown device {device!r}: use cuda:N, rocm:N, mps or cpu")
    found.require()
    return found


def _is_hip() -> bool:
    return getattr(getattr(imported("torch"), "version", None), "hip", None) is not None


def _first() -> DeviceMemoryCollector:
    reasons = []
    for kind in GPU_COLLECTORS:
        collector: DeviceMemoryCollector = kind()
        why = collector.unavailable()
        if why is None:
            return collector
        reasons.append((collector.name(), why))
    # What the program uses says most: frameworks that are not there are no news.
    loaded = [why for name, why in reasons if imported(name.split(".")[1]) is not None]
    raise DeviceUnavailable(f"no GPU memory to profile: {(loaded or [reasons[0][1]])[0]}")


def get_gpu_info(device: Any = None) -> dict[str, Any]:
    """The GPUs of this machine as their drivers tell it, and what PyTorch's allocator holds of the chosen one. Imports
    nothing and starts no device; what cannot be read is missing, and `error` says why."""
    info: dict[str, Any] = {}
    try:
        machine = json.loads(answer(["info", "--format", "json"]))
        info["gpus"] = machine["devices"]
        if not info["gpus"]:
            info["error"] = f"no GPU found: {machine.get('why_no_nvidia') or 'the NVIDIA driver has none'}"
    except (MemoryProfilingError, ValueError, KeyError) as error:
        info["error"] = str(error)
    try:
        collector = build_device_memory_collector(device)
        sample = collector.sample()
    except DeviceUnavailable as error:
        info["allocator_error"] = str(error)
        return info
    info["backend"] = collector.capabilities().backend
    info["device_id"] = sample.device_id
    info["memory"] = {**sample.counters(), **sample.details}
    if sample.peak_bytes is not None:
        info["memory"]["peak"] = sample.peak_bytes
    return info
