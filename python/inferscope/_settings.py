"""What `start` was given, as the flags of the recorder that it starts. The recorder alone reads the environment and
`.inferscope.yaml`, and decides; what comes of it comes back as variables, which the native part reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

# The words for yes and no, in capitals or not: the same as of the command, from whose source they are written here.
_YES = ("true", "1", "yes", "on")
_NO = ("false", "0", "no", "off")


def arguments(output: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> list[str]:
    """Flags for all that was given, be it a no or an empty list: it wins. What was left out (None) is not among them:
    there the environment decides, then the file."""
    flags = [f"--output={os.fsdecode(output)}"] if output else []
    return flags + [_flag(name, value) for name, value in options.items() if value is not None]


def _flag(name: str, value: Any) -> str:
    # The one option whose flag has another name: a rate of 0 is none.
    if name == "rate_hz":
        return f"--rate={value}" if value else "--no-stacks"
    if isinstance(value, bool):
        value = str(value).lower()
    elif not isinstance(value, str) and hasattr(value, "__iter__"):
        value = ",".join(map(str, value))
    return f"--{name.replace('_', '-')}={value}"


def variables(told: bytes) -> dict[str, str]:
    """What the recorder answers: `name=value`, each with a zero byte behind it."""
    pairs = (pair.partition(b"=") for pair in told.split(b"\0") if pair)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def verbose() -> bool:
    """Whether what is only of interest to whoever looks for a fault is said, too."""
    return os.environ.get("INFERSCOPE_LOG_LEVEL", "").lower() in ("debug", "trace")


def truth(text: str) -> bool | None:
    """Yes or no; None for any other word."""
    word = text.lower()
    return True if word in _YES else False if word in _NO else None
