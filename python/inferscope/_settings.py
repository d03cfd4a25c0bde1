"""What `start` was given, as the flags of the recorder that it starts. The recorder alone reads the environment and
`.inferscope.yaml`, and decides; what comes of it comes back as variables, which the native part reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

# The options that are one value each, with their flags.
_VALUES = {
    "min_us": "--min-us",
    "memory_hz": "--memory-hz",
    "trace_size_mb": "--trace-size-mb",
    "gpu_detail": "--gpu-detail",
    "overhead_budget": "--overhead-budget",
    "device_hz": "--device-hz",
}
# Those that are on or off, or a word.
_SWITCHES = {"calls": "--calls", "native": "--native", "layers": "--layers"}
_LISTS = {"include": "--include", "exclude": "--exclude"}


def arguments(output: str | os.PathLike[str] | None, options: Mapping[str, Any]) -> list[str]:
    """Flags for all that was given, be it a no or an empty list: it wins. What was left out (None) is not among them:
    there the environment decides, then the file."""
    flags = [f"--output={os.fsdecode(output)}"] if output else []
    if options["rate_hz"] is not None:
        flags.append(f"--rate={options['rate_hz']}" if options["rate_hz"] else "--no-stacks")
    for name, flag in _SWITCHES.items():
        if options[name] is not None:
            flags.append(f"{flag}={str(options[name]).lower()}")
    for name, flag in _LISTS.items():
        if options[name] is not None:
            patterns = [options[name]] if isinstance(options[name], str) else options[name]
            flags.append(f"{flag}={','.join(map(str, patterns))}")
    for name, flag in _VALUES.items():
        if options[name] is not None:
            flags.append(f"{flag}={options[name]}")
    return flags


def variables(told: bytes) -> dict[str, str]:
    """What the recorder answers: `name=value`, each with a zero byte behind it."""
    pairs = (pair.partition(b"=") for pair in told.split(b"\0") if pair)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def truth(text: str) -> bool | None:
    """The words for yes and no, as everywhere; None for any other."""
    word = text.lower()
    return True if word in ("true", "1", "yes", "on") else False if word in ("false", "0", "no", "off") else None
