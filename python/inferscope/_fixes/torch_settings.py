# mypy: disable-error-code="import-not-found"
"""The fixes that are settings of PyTorch. Each is made when PyTorch has been imported, and held against a
program that sets the opposite: that line is what a person would edit."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from . import say


def _hold(owner: Any, name: str, undoes: Callable[..., bool]) -> bool:
    """Calls of `owner.name` that would undo the fix are left out. False: this version has no such function."""
    original = getattr(owner, name, None)
    if original is None:
        return False

    def held(*arguments: Any) -> Any:
        return None if undoes(*arguments) else original(*arguments)

    setattr(owner, name, held)
    return True


def hold_threads(most: int) -> None:
    """Of the fix `threads`: a program, and PyTorch itself in the workers of a loader, may ask for fewer."""
    import torch

    _hold(torch, "set_num_threads", lambda number: number > most)
    _hold(torch._C, "set_num_threads", lambda number: number > most)


def _tf32() -> None:
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    now = torch.get_float32_matmul_precision()
    if now != "high":
        say("failed", f"PyTorch keeps the precision of matrix products at {now!r}")
        return
    _hold(torch._C, "_set_float32_matmul_precision", lambda precision: precision == "highest")
    _hold(torch._C, "_set_cublas_allow_tf32", lambda allowed: not allowed)
    # Newer versions: one setter for every backend, where "ieee" is what TF32 is not and "none" leaves it to the others.
    exact = ("ieee", "none")
    _hold(
        torch._C, "_set_fp32_precision_setter", lambda backend, _, how: backend in ("cuda", "generic") and how in exact
    )
    _hold(_property("cudnn", "allow_tf32"), "setter", lambda allowed: not allowed)
    say("applied", f'torch.set_float32_matmul_precision("high"), which was {before!r}')


def _property(module: str, name: str) -> Any:
    """The descriptor behind an attribute such as torch.backends.cudnn.benchmark: it has taken its setter along."""
    import torch

    return vars(type(getattr(torch.backends, module))).get(name)


def _sdpa() -> None:
    import torch

    names = ("flash", "mem_efficient", "cudnn")
    switched = []
    for name in names:
        enable = getattr(torch.backends.cuda, f"enable_{name}_sdp", None)
        if enable is not None:
            enable(True)
            _hold(torch._C, f"_set_sdp_use_{name}", lambda enabled: not enabled)
            switched.append(name)
    if switched:
        say("applied", f"kernels for attention: {', '.join(switched)}, and the plain one where none of them fits")
    else:
        say("failed", "this version of PyTorch has no kernels for attention to choose from")


def _cudnn_benchmark() -> None:
    import torch

    torch.backends.cudnn.benchmark = True
    if not torch.backends.cudnn.benchmark:
        say("failed", "this PyTorch does not let cudnn.benchmark be set")
        return
    _hold(_property("cudnn", "benchmark"), "setter", lambda on: not on)
    _hold(torch._C, "_set_cudnn_benchmark", lambda on: not on)
    say("applied", "torch.backends.cudnn.benchmark = True")


def _channels_last() -> None:
    import torch
    from torch.nn.modules.module import register_module_forward_pre_hook

    # Only looked at, not kept alive.
    known: weakref.WeakSet[Any] = weakref.WeakSet()
    roots: weakref.WeakSet[Any] = weakref.WeakSet()
    count = 0
    say("waiting", "no model with a Conv2d was called")

    def called(module: Any, _inputs: Any) -> None:
        nonlocal count
        if module in known:
            if module in roots:
                # A model is called again: all that are called in a step have been, and nothing stays in the way.
                handle.remove()
            return
        roots.add(module)
        known.update(module.modules())
        convolutions = sum(isinstance(part, torch.nn.Conv2d) for part in module.modules())
        if convolutions:
            module.to(memory_format=torch.channels_last)
            count += convolutions
            say("applied", f"{count} Conv2d in channels_last")

    def safely(module: Any, inputs: Any) -> None:
        try:
            called(module, inputs)
        except Exception as error:
            handle.remove()
            say("failed", f"{type(error).__name__}: {error}")

    handle = register_module_forward_pre_hook(safely)


def _pinned_copies() -> None:
    from . import copies

    copies.switch()


SWITCHES: dict[str, Callable[[], None]] = {
    "tf32": _tf32,
    "sdpa": _sdpa,
    "cudnn-benchmark": _cudnn_benchmark,
    "channels-last": _channels_last,
    "pinned-copies": _pinned_copies,
}
