# mypy: disable-error-code="import-not-found"
"""The fix `pinned-copies`: tensors in pageable memory go to the GPU through pinned memory, without the host waiting.

That gives the same bytes only where all work of the GPU is in one stream: the copy is ordered before what uses it. A
second stream would not wait, so when the program makes one, the GPU is waited for once and copies are as they were."""

from __future__ import annotations

from typing import Any

from . import say


class _State:
    on = True
    copies = 0


def switch() -> None:
    import torch

    # Nothing here asks whether there is a GPU: that would start the driver before the program does and may fork.
    if not torch.backends.cuda.is_built():
        say("failed", "this PyTorch was built without CUDA")
        return
    say("waiting", "no tensor in pageable memory was copied to the GPU")
    tensor = torch.Tensor
    original_to, original_cuda, original_copy = tensor.to, tensor.cuda, tensor.copy_

    def to(self: Any, *arguments: Any, **options: Any) -> Any:
        if _State.on and _pageable(self) and _to_gpu(arguments, options):
            staged = _staged(self)
            if staged is not None:
                if arguments[3:] or (arguments and isinstance(arguments[-1], bool)):
                    return original_to(staged, *arguments, **options)  # It says itself whether to wait.
                return original_to(staged, *arguments, **{**options, "non_blocking": True})
        return original_to(self, *arguments, **options)

    def cuda(self: Any, *arguments: Any, **options: Any) -> Any:
        if _State.on and _pageable(self) and len(arguments) < 2:
            staged = _staged(self)
            if staged is not None:
                return original_cuda(staged, *arguments, **{**options, "non_blocking": True})
        return original_cuda(self, *arguments, **options)

    def copy_(self: Any, source: Any, *arguments: Any, **options: Any) -> Any:
        if _State.on and not arguments and getattr(self, "is_cuda", False) and _pageable(source):
            staged = _staged(source)
            if staged is not None:
                return original_copy(self, staged, **{**options, "non_blocking": True})
        return original_copy(self, source, *arguments, **options)

    tensor.to, tensor.cuda, tensor.copy_ = to, cuda, copy_
    _until_a_second_stream()


def _pageable(tensor: Any) -> bool:
    """A plain tensor in ordinary memory, outside autograd: those that only carry data to the GPU."""
    import torch

    return (
        type(tensor) is torch.Tensor
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and tensor.numel() > 0
        and (tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last))
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not torch.compiler.is_compiling()
        and not tensor.is_pinned()
    )


def _to_gpu(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether the arguments of `Tensor.to` name a GPU."""
    import torch

    for where in (*arguments[:1], options.get("device"), options.get("other")):
        if isinstance(where, torch.Tensor):
            return bool(where.is_cuda)
        if isinstance(where, torch.device):
            return bool(where.type == "cuda")
        if isinstance(where, str):
            return where.startswith("cuda")
        if isinstance(where, int) and not isinstance(where, bool):
            return True
    return False


def _staged(tensor: Any) -> Any:
    """The same in pinned memory of its own, which PyTorch keeps until the copy is done."""
    try:
        staged = tensor.pin_memory()
    except Exception as error:
        _State.on = False
        say("failed", f"memory cannot be pinned: {error}")
        return None
    _State.copies += 1
    if _State.copies == 1:
        say("applied", "copies of pageable tensors to the GPU go through pinned memory")
    return staged


def _until_a_second_stream() -> None:
    import torch

    stream: Any = torch.cuda.Stream
    make = stream.__new__

    def new(cls: Any, *arguments: Any, **options: Any) -> Any:
        # PyTorch makes such objects for the current stream, too: those have the number of one that exists.
        if _State.on and "stream_id" not in options:
            _State.on = False
            if _State.copies:
                torch.cuda.synchronize()
            say("failed", "the program uses a second stream: a copy that nobody waits for could come too late")
        return make(cls, *arguments, **options)

    stream.__new__ = staticmethod(new)
