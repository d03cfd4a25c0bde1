# mypy: disable-error-code="import-not-found,attr-defined,no-untyped-call"
"""When a look would disturb the program, and how our mode comes onto PyTorch's stack and leaves it. The stack is the
thread's own. PyTorch's flags beside it are the process's, and two threads that set them in turn would leave them
wrong for ever: they are left alone, which is why nothing that is compiled may run under a look."""

from __future__ import annotations

import sys
from typing import Any


def possible() -> bool:
    """Before, a higher-order operator (flex attention, `torch.cond`) fails under a mode that does not know it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    return hasattr(TorchDispatchMode, "supports_higher_order_operators")


def why_not(ours: Any = None) -> str | None:
    """Why this is no moment for a look, or None. With our mode on the stack: why it must not go on."""
    import torch
    from torch._C import _get_tracing_state

    if _compiles():
        return "torch.compile is used: operators are not recorded beside it"
    other_mode = torch._C._len_torch_dispatch_stack() > (ours is not None) or _top() is not ours
    for here, what in (
        (_get_tracing_state() is not None, "torch.jit.trace is running"),
        (torch._C._autograd._profiler_enabled(), "torch.profiler is running"),
        (other_mode, "another dispatch mode is active"),
        (torch._C._functorch.peek_interpreter_stack() is not None, "a functorch transform is running"),
        (is_capturing(), "a CUDA graph is being captured"),
    ):
        if here:
            return f"{what}: operators are not recorded then"
    return None


def _compiles() -> bool:
    """Whether the program has asked for anything to be compiled. What it only keeps from that has no backend."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is None:
        return False
    backends = getattr(dynamo, "cached_backends", None)
    return backends is None or any(backend is not None for backend in list(backends.values()))


def is_capturing() -> bool:
    import torch

    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def is_inference() -> bool:
    import torch

    return bool(torch.is_inference_mode_enabled())


def _top() -> Any:
    import torch

    length = torch._C._len_torch_dispatch_stack()
    return torch._C._get_dispatch_stack_at(length - 1) if length else None


def push(mode: Any) -> None:
    import torch

    torch._C._push_on_torch_dispatch_stack(mode)


def pop(mode: Any) -> bool:
    """False: another mode lies on it, or it is not here just now."""
    import torch

    if _top() is not mode:
        return False
    torch._C._pop_torch_dispatch_stack(None)
    return True
