# mypy: disable-error-code="import-not-found"
"""What is done in a program that uses PyTorch, when it has imported it: the names of layers if they were asked for, the
blocks of its allocators, and CUPTI is handed over when the program starts PyTorch's own profiler. Programs without
PyTorch pay nothing for this."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_begun: set[str] = set()


def follow() -> None:
    """To be called when recording has begun. Any number of times."""
    from . import _native
    from ._after_import import after_import

    if _native.setting("layers") == "true":
        if "layers" not in _begun:
            _begun.add("layers")
            after_import("torch", _layers)
        elif "inferscope._layers" in sys.modules:
            _layers()
    if _native.setting("ops") == "true":
        if "ops" not in _begun:
            _begun.add("ops")
            after_import("torch", _ops)
        elif "inferscope._ops" in sys.modules:
            _ops()
    if _native.setting("memory_events") != "none":
        if "memory" not in _begun:
            _begun.add("memory")
            after_import("torch", _memory)
        elif "torch" in sys.modules:
            _memory()
    if _native.setting("retainers") == "true" and "retainers" not in _begun:
        _begun.add("retainers")
        after_import("torch", _retainers)
    if _native.setting("gpu_detail") != "off" and "profiler" not in _begun:
        _begun.add("profiler")
        after_import("torch", _yield_to_profiler)


def _layers() -> None:
    from . import _layers

    _layers.begin()


def _ops() -> None:
    from . import _ops

    _ops.begin()


def _memory() -> None:
    from . import _native

    if _native.setting("memory_stacks_kb") != "0":
        from . import _stacks

        _stacks.begin()
    _native.memory_start(_native.setting("memory_events") == "all")


def _retainers() -> None:
    """When the program ends. What runs at exit runs in reverse order: what the program registered later has run by
    then."""
    import atexit

    atexit.register(_at_exit, os.getpid())


def _at_exit(pid: int) -> None:
    # A forked child ends with the hooks of its parent.
    if pid == os.getpid():
        from .memory import _retainers

        _retainers.write_at_exit()


def _yield_to_profiler() -> None:
    """One profiler at a time can have CUPTI, and Kineto asks for it once and never again. The program's own goes first:
    ours lets go before it asks, and the report says from when on the GPU was not recorded."""
    from torch.autograd import profiler

    original = getattr(profiler, "_prepare_profiler", None)
    if original is None:
        return

    def prepare(config: "Any", activities: "Any", *rest: "Any", **options: "Any") -> "Any":
        try:
            if any(getattr(activity, "name", "") == "CUDA" for activity in activities):
                from . import _native

                release = getattr(_native, "gpu_release", None)
                if release is not None:
                    release("torch.profiler")
        except Exception:
            pass  # Then the two share what they can; the program's call goes on whatever happens here.
        return original(config, activities, *rest, **options)

    profiler._prepare_profiler = prepare
