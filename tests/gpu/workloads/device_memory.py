"""Device memory behind the back of any framework, through ctypes: the CUDA runtime's allocations, the driver's virtual
memory management, and NVML's own figures to compare with."""

from __future__ import annotations

import ctypes
import os
from typing import Any

MIB = 1 << 20
NOT_AVAILABLE = (1 << 64) - 1


class Refused(Exception):
    """A call failed."""


def loaded(name: str) -> str:
    """The library of that name that this process has mapped already, or the name for the loader to find."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if os.path.basename(path).startswith(name):
                return path
    return name


class Runtime:
    """libcudart: the one that PyTorch brought along."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(loaded("libcudart.so"))

    def malloc(self, size: int) -> int:
        address = ctypes.c_void_p()
        if code := self._library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)):
            raise Refused(f"cudaMalloc of {size} bytes gave {code}")
        return address.value or 0

    def free(self, address: int) -> None:
        if code := self._library.cudaFree(ctypes.c_void_p(address)):
            raise Refused(f"cudaFree gave {code}")

    def host_alloc(self, size: int) -> int:
        address = ctypes.c_void_p()
        if code := self._library.cudaHostAlloc(ctypes.byref(address), ctypes.c_size_t(size), 0):
            raise Refused(f"cudaHostAlloc of {size} bytes gave {code}")
        return address.value or 0

    def free_host(self, address: int) -> None:
        if code := self._library.cudaFreeHost(ctypes.c_void_p(address)):
            raise Refused(f"cudaFreeHost gave {code}")


class Location(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))


class Properties(ctypes.Structure):
    """`CUmemAllocationProp`."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class Access(ctypes.Structure):
    _fields_ = (("location", Location), ("flags", ctypes.c_int))


class VirtualMemory:
    """Physical memory that is created, mapped into one reserved range, unmapped and released: what engines with a sleep
    mode do. Needs a context."""

    def __init__(self, chunks: int, chunk: int) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._properties = Properties(kind=1, location=Location(1, 0))
        granularity = ctypes.c_size_t()
        self("cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(self._properties), 0)
        self.chunk = (chunk + granularity.value - 1) // granularity.value * granularity.value
        self.chunks = chunks
        self.handles: list[ctypes.c_uint64] = []
        self._at = ctypes.c_uint64()
        self("cuMemAddressReserve", ctypes.byref(self._at), ctypes.c_size_t(chunks * self.chunk), ctypes.c_size_t(0),
             ctypes.c_uint64(0), ctypes.c_uint64(0))  # fmt: skip

    def __call__(self, function: str, *arguments: Any) -> None:
        if code := getattr(self._library, function)(*arguments):
            raise Refused(f"{function} gave {code}")

    def wake(self, chunks: int) -> None:
        access = Access(Location(1, 0), 3)
        for number in range(chunks):
            handle, place = ctypes.c_uint64(), ctypes.c_uint64(self._at.value + number * self.chunk)
            size = ctypes.c_size_t(self.chunk)
            self("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(self._properties), ctypes.c_uint64(0))
            self("cuMemMap", place, size, ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
            self("cuMemSetAccess", place, size, ctypes.byref(access), ctypes.c_size_t(1))
            self.handles.append(handle)

    def sleep(self) -> None:
        for number, handle in enumerate(self.handles):
            place, size = ctypes.c_uint64(self._at.value + number * self.chunk), ctypes.c_size_t(self.chunk)
            self("cuMemUnmap", place, size)
            self("cuMemRelease", handle)
        self.handles.clear()


class NvmlMemory(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class NvmlProcess(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Nvml:
    """What NVML says of the first device. A function that is missing or fails gives None."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._device = ctypes.c_void_p()
        if code := self._library.nvmlInit_v2():
            raise Refused(f"nvmlInit_v2 gave {code}")
        if code := self._library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device)):
            raise Refused(f"nvmlDeviceGetHandleByIndex_v2 gave {code}")

    def used(self) -> int:
        memory = NvmlMemory(version=ctypes.sizeof(NvmlMemory) | 2 << 24)
        if code := self._library.nvmlDeviceGetMemoryInfo_v2(self._device, ctypes.byref(memory)):
            raise Refused(f"nvmlDeviceGetMemoryInfo_v2 gave {code}")
        return memory.used

    def processes(self) -> list[tuple[int, int | None]]:
        found, count = (NvmlProcess * 128)(), ctypes.c_uint(128)
        if self._library.nvmlDeviceGetComputeRunningProcesses_v3(self._device, ctypes.byref(count), found):
            return []
        return [(one.pid, None if one.memory == NOT_AVAILABLE else one.memory) for one in found[: count.value]]

    def said(self) -> dict[str, object]:
        listed = self.processes()
        own = dict(listed).get(os.getpid())
        return {"used": self.used(), "own": own, "listed": len(listed), "own_pid_listed": os.getpid() in dict(listed)}
