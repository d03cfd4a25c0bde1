"""Whether an exception means that memory ran out. One that merely speaks of memory does not, and is called what it
is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: How PyTorch's C++ begins the message of a plain RuntimeError when memory ran out: before 1.13, and on other devices
#: still.
_TORCH_MESSAGES = (
    ("CUDA out of memory. Tried to allocate", "device"),
    ("HIP out of memory. Tried to allocate", "device"),
    ("XPU out of memory. Tried to allocate", "device"),
    ("MPS backend out of memory", "device"),
    ("CUDA error: out of memory", "device"),
    ("HIP error: out of memory", "device"),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "device"),
    ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "device"),
    ("[enforce fail at alloc_cpu.cpp", "host"),
    ("DefaultCPUAllocator: can't allocate memory", "host"),
    ("DefaultCPUAllocator: not enough memory", "host"),
)
_MENTION = re.compile(
    r"\b(?:out of memory|ooms?|(?:failed|unable) to allocate|allocation failed|bad_alloc|memoryerror)\b"
)
# A chain of causes is short; one that is a ring ends anyway.
_LONGEST_CHAIN = 50


@dataclass(frozen=True)
class OOMExceptionClassification:
    """What an exception says of memory."""

    is_oom: bool
    #: `torch.OutOfMemoryError`, `MemoryError`, ...; of a mention: the words. None: it has nothing to do with memory.
    reason: str | None
    #: `device`, `host`, `mention` (it only speaks of memory), `during` (raised while one was handled), or `none`.
    kind: str = "none"
    #: The exception that says so: the one that was asked about, or its cause.
    exception: BaseException | None = None


def classify_oom_exception(exc: BaseException) -> OOMExceptionClassification:
    """Looks at the exception, at what it was raised `from`, and into groups. What it was merely raised during is no
    cause."""
    for each in _causes(exc):
        found = _itself(each)
        if found is not None:
            reason, kind = found
            return OOMExceptionClassification(True, reason, kind, each)
    context = None if exc.__suppress_context__ or exc.__cause__ is not None else exc.__context__
    if context is not None and any(_itself(each) for each in _causes(context)):
        return OOMExceptionClassification(False, "raised while an out-of-memory error was handled", "during", context)
    text = _text(exc).lower()
    mention = _MENTION.search(text)
    if mention is not None:
        return OOMExceptionClassification(False, f"mentions {mention.group()!r}", "mention", exc)
    return OOMExceptionClassification(False, None)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    waiting, seen = [exc], set[int]()
    while waiting and len(seen) < _LONGEST_CHAIN:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        members = getattr(each, "exceptions", None)
        if isinstance(members, tuple):  # A group, of Python 3.11 or later or of its backport.
            waiting.extend(member for member in members if isinstance(member, BaseException))
        if each.__cause__ is not None:
            waiting.append(each.__cause__)


def _text(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:
        return ""


def _itself(exc: BaseException) -> tuple[str, str] | None:  # noqa: PLR0911 - one for each framework
    """Reason and kind, by the type and not by the words, except where a framework has no type for it."""
    if isinstance(exc, MemoryError):
        return "MemoryError", "host"
    text = _text(exc)
    for kind in type(exc).__mro__:
        package = kind.__module__.partition(".")[0]
        if kind.__name__ == "OutOfMemoryError" and package in ("torch", "cupy", "cupy_backends"):
            return f"{package}.OutOfMemoryError", "device"
        # Queues and quotas are exhausted, too.
        if kind.__name__ == "ResourceExhaustedError" and package == "tensorflow" and _allocates(text):
            return "tensorflow.ResourceExhaustedError", "device"
        if kind.__name__ in ("XlaRuntimeError", "JaxRuntimeError") and package in ("jax", "jaxlib"):
            return ("jax.RESOURCE_EXHAUSTED", "device") if _exhausted(text) else None
        if kind.__name__ == "AcceleratorError" and package == "torch" and "out of memory" in text:
            return "torch.AcceleratorError", "device"
    if type(exc) is RuntimeError:
        begins = text.lstrip()
        for message, kind_of in _TORCH_MESSAGES:
            if begins.startswith(message):
                return f"torch: {message}", kind_of
    return None


def _allocates(text: str) -> bool:
    text = text.lower()
    return "oom when allocating" in text or "out of memory" in text or "failed to allocate memory" in text


def _exhausted(text: str) -> bool:
    return text.startswith("RESOURCE_EXHAUSTED") and ("memory" in text.lower() or "allocat" in text.lower())
