"""The GPU in a program that starts recording by itself: where CUDA is not yet running, the driver is told to load our
library when the program starts it, which we never do; where it runs already, the library records from here on."""

from __future__ import annotations

import os

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_VARIABLES = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")


def _wanted() -> bool:
    return _native.setting("gpu_detail") != "off"


def library() -> str | None:
    """Where the library is that records the GPU."""
    names = sorted(name for name in os.listdir(_PACKAGE) if name.startswith("_cuda") and name.endswith(".so"))
    return os.path.join(_PACKAGE, names[0]) if names else None


def environment() -> Mapping[str, str]:
    """What has the CUDA driver and NVTX load our library, in this process and its children; not where the program has
    another there."""
    path = library() if _wanted() else None
    return {name: path for name in _VARIABLES if path is not None and not os.environ.get(name)}


def start() -> str | None:
    """Records the GPU from now on if the program has started CUDA, else once it does. Returns why that cannot be."""
    begin = getattr(_native, "gpu_start", None)
    if begin is None or not _wanted() or library() is None or not _running():
        return None
    reason: str | None = begin()
    return reason


def _running() -> bool:
    """Whether the driver's library is in this process; whether CUDA was also started, our library asks it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return any("/libcuda.so" in line for line in maps)
    except OSError:
        return False
