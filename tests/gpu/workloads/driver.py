"""The CUDA driver through ctypes, with two kernels as PTX text: for programs without PyTorch, and for an interpreter
that has no InferScope in it (`python -I -S`), which only the driver's own injection can record."""

from __future__ import annotations

import ctypes
import time

# `spin` says when it starts, waits that many nanoseconds by the device's timer, and says when it is about to end.
PTX = b"""
.version 6.4
.target sm_75
.address_size 64

.visible .entry spin(.param .u64 flags, .param .u32 number, .param .u64 nanos)
{
  .reg .b64 %at, %want, %began, %now, %passed;
  .reg .b32 %number;
  .reg .pred %waiting;
  ld.param.u64 %at, [flags];
  ld.param.u32 %number, [number];
  ld.param.u64 %want, [nanos];
  mov.u64 %began, %globaltimer;
  st.volatile.global.u32 [%at], %number;
  membar.sys;
AGAIN:
  mov.u64 %now, %globaltimer;
  sub.u64 %passed, %now, %began;
  setp.lt.u64 %waiting, %passed, %want;
  @%waiting bra AGAIN;
  st.volatile.global.u32 [%at+64], %number;
  membar.sys;
  ret;
}

.visible .entry nothing()
{
  ret;
}
\0"""


class Refused(Exception):
    """A call of the driver failed."""


class Driver:
    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self.device = device
        self.context()

    def __call__(self, function: str, *arguments: object) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            raise Refused(f"{function} gave {code}")

    def context(self) -> None:
        """Makes the device's primary context current and loads the kernels into it."""
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self("cuCtxSetCurrent", context)
        self("cuModuleLoadData", ctypes.byref(module), PTX)
        self.functions = {}
        for name in ("spin", "nothing"):
            function = ctypes.c_void_p()
            self("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            self.functions[name] = function

    def launch(self, name: str, *arguments: object) -> None:
        pointers = (ctypes.c_void_p * max(len(arguments), 1))()
        for place, argument in enumerate(arguments):
            pointers[place] = ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p)  # type: ignore[type-var]
        self("cuLaunchKernel", self.functions[name], 1, 1, 1, 1, 1, 1, 0, None, pointers, None)

    def wait(self) -> None:
        self("cuCtxSynchronize")


class Flags:
    """Two words of the host's memory that kernels write and the host reads meanwhile."""

    def __init__(self, driver: Driver) -> None:
        host, device = ctypes.c_void_p(), ctypes.c_uint64()
        mapped, portable = 2, 1
        driver("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(128), mapped | portable)
        driver("cuMemHostGetDevicePointer_v2", ctypes.byref(device), host, 0)
        self.device = device
        self.words = (ctypes.c_uint32 * 32).from_address(host.value or 0)
        ctypes.memset(host, 0, 128)

    def wait_for(self, place: int, number: int, seconds: float = 5.0) -> int:
        """When the host saw the number there, in nanoseconds of CLOCK_MONOTONIC."""
        words, deadline = self.words, time.monotonic() + seconds
        while words[place * 16] != number:
            if time.monotonic() > deadline:
                raise Refused(f"the kernel did not write {number} within {seconds} s")
        return time.monotonic_ns()
