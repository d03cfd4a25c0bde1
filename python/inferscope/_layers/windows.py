"""Whether the GPU is recorded at this moment, asked of the library that records it. With an overhead budget it is so in
windows only: layers that are recorded between them would name nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .. import _driver

# What waits here has to end before the program does.
_LONGEST_WAIT_MS = 250


class RecordingWindows:
    """`now()` is 0 where the GPU is not recorded, even in a window, and odd between two."""

    def __init__(self) -> None:
        self._path = _driver.library()
        self._ask: Any = None
        self._wait: Any = None

    def now(self) -> int:
        if self._ask is None and not self._find():
            return 0
        return int(self._ask())

    def wait_open(self, over: Callable[[], bool]) -> None:
        """Returns when no window is being waited for any more, or all is over. Other threads run in that time."""
        window = self.now()
        while window % 2 and not over():
            self._wait(window, _LONGEST_WAIT_MS)
            window = self.now()

    def _find(self) -> bool:
        """The CUDA driver brings the library in when the program begins to use it, which may be at any time."""
        if self._path is None:
            return False
        try:
            import ctypes

            # Never loaded by us: where it is not, nothing of CUDA is recorded.
            held = ctypes.PyDLL(self._path, mode=os.RTLD_NOLOAD)
            free = ctypes.CDLL(self._path, mode=os.RTLD_NOLOAD)
            ask, wait = held.inferscope_gpu_window, free.inferscope_gpu_window_wait
            ask.restype, ask.argtypes = ctypes.c_uint32, ()
            wait.restype, wait.argtypes = None, (ctypes.c_uint32, ctypes.c_uint32)
        except (ImportError, OSError):
            return False
        except AttributeError:
            self._path = None  # Of another version.
            return False
        self._wait, self._ask = wait, ask
        return True
