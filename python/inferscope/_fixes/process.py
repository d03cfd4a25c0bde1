"""The fixes that need no PyTorch: the garbage collector, CPUs, and settings in the environment, where all that is
checked is whether anybody here reads them."""

from __future__ import annotations

import os
import sys

from . import guarded, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What the rule gc-pauses advises.
_THRESHOLDS = (50_000, 50, 100)
# Of each sort. The first may come while a program still loads; after the last, what dies is not kept for ever.
_MOST_FREEZES = 3


class _Gc:
    before_steps = 0
    after_collections = 0
    busy = False


def _gc_freeze(_value: str) -> None:
    """When the first steps begin; in a program that marks none, after the first full collections."""
    import gc

    say("waiting", "no step began and no full garbage collection ran")
    gc.callbacks.append(_collected)
    package: Any = sys.modules["inferscope"]
    original = package.step

    def step(*arguments: Any, **options: Any) -> Any:
        if _Gc.before_steps < _MOST_FREEZES:
            guarded(_before_step)()
        else:
            package.step = original
        return original(*arguments, **options)

    step.__doc__ = original.__doc__
    package.step = step


def _before_step() -> None:
    import gc

    if _Gc.busy:
        return
    _Gc.before_steps += 1
    _Gc.busy = True
    try:
        gc.collect()
    finally:
        _Gc.busy = False
    _freeze()


def _collected(phase: str, info: dict[str, int]) -> None:
    """A callback of the collector. Freezing moves lists about and collects nothing, so it may be done here."""
    # Incremental collectors (CPython 3.14) have no full collections of their own accord, only old ones.
    full = info.get("generation", 0) >= (1 if sys.version_info[:2] == (3, 14) else 2)
    if phase == "stop" and full and not _Gc.busy and _Gc.after_collections < _MOST_FREEZES:
        _Gc.after_collections += 1
        guarded(_freeze)()


def _freeze() -> None:
    import gc

    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    say("applied", f"gc.freeze() keeps {gc.get_freeze_count():,} objects out of collections")


def _affinity(value: str) -> None:
    wanted: set[int] = set()
    for part in value.split(","):
        first, _, last = part.partition("-")
        wanted.update(range(int(first), int(last or first) + 1))
    before = len(os.sched_getaffinity(0))
    os.sched_setaffinity(0, wanted)
    now = os.sched_getaffinity(0)
    if now != wanted:
        say("failed", f"the kernel gave other CPUs: {sorted(now)}")
    else:
        say("applied", f"{len(now)} of {before} CPUs: {value}")


# Parts of the names of libraries that read the number of threads from the environment.
_POOLS = ("libgomp", "libomp", "libiomp", "openblas", "libmkl", "libblis")


def _threads(value: str) -> None:
    """The command has set the variables; what is checked is whether any library here reads them."""
    import atexit

    from .._after_import import after_import

    def in_torch() -> None:
        from . import torch_settings

        torch_settings.hold_threads(int(value))

    say("waiting", "the process had not ended")
    atexit.register(guarded(_look_for_pools), value)
    after_import("torch", guarded(in_torch))


def _look_for_pools(value: str) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() > int(value):
        say("failed", f"PyTorch has {torch.get_num_threads()} threads all the same, not {value}")
        return
    found = sorted({pool for pool in _POOLS for path in _mapped() if pool in path})
    if found or "numexpr" in sys.modules:
        say("applied", f"{value} threads for {', '.join(found) or 'numexpr'}")
    else:
        say("failed", "no library with a thread pool that it knows (OpenMP, MKL, OpenBLAS, numexpr) was loaded")


def _mapped() -> set[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return {os.path.basename(line.rstrip("\n").split("/", 1)[-1]) for line in maps if "/" in line}


def _expandable_segments(_value: str) -> None:
    import atexit

    say("waiting", "the process had not ended")
    atexit.register(guarded(_look_at_allocator))


def _look_at_allocator() -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        say("failed", "PyTorch was never imported")
    elif not torch.cuda.is_initialized():
        say("failed", "PyTorch used no CUDA memory")
    elif torch.cuda.memory.get_allocator_backend() != "native":
        say("failed", f"PyTorch's allocator is {torch.cuda.memory.get_allocator_backend()}, which has no segments")
    else:
        say("applied", "PyTorch's allocator read expandable_segments:True")


def _driver(variable: str) -> Callable[[str], None]:
    """What only the CUDA driver reads, when it is loaded."""

    def switch(_value: str) -> None:
        import atexit

        def look() -> None:
            if any(name.startswith("libcuda.so") for name in _mapped()):
                say("applied", f"the CUDA driver was loaded with {variable}={os.environ.get(variable, '')}")
            else:
                say("failed", "the CUDA driver was never loaded")

        say("waiting", "the process had not ended")
        atexit.register(guarded(look))

    return switch


SWITCHES: dict[str, Callable[[str], None]] = {
    "gc-freeze": _gc_freeze,
    "affinity": _affinity,
    "threads": _threads,
    "expandable-segments": _expandable_segments,
    "eager-loading": _driver("CUDA_MODULE_LOADING"),
    "launch-queue": _driver("CUDA_SCALE_LAUNCH_QUEUES"),
}
