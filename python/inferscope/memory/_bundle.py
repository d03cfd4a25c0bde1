"""Writes the bundle of a program that ran out of memory, in the same form as `inferscope track`: whole or not at all,
without secrets, and the oldest go when there are too many."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PREFIX = "oom_dump_"
_SCHEMA = 2
#: Variables that say how memory was set up. Everything else may be a secret and is never kept.
_ALLOWED = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "LOCAL_RANK",
    "MALLOC_ARENA_MAX",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "RANK",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR",
    "WORLD_SIZE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)


def write(
    folder: Path,
    *,
    backend: str,
    reason: str,
    events: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any],
    max_dumps: int,
    max_total_mb: int,
) -> Path:
    """The bundle's folder. OSError where it cannot be written; nothing is left then."""
    folder.mkdir(parents=True, exist_ok=True)
    created = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    unfinished, finished = _places(folder, f"{PREFIX}{created}_{os.getpid()}_{backend}")
    samples = [event for event in events if event.get("event_type") == "sample"]
    files: dict[str, Any] = {
        "events.json": list(events),
        "metadata.json": {
            "reason": reason,
            **metadata,
            "captured_event_count": len(events),
            "last_sample": samples[-1] if samples else None,
        },
        "environment.json": {"variables": {name: os.environ[name] for name in _ALLOWED if name in os.environ}},
    }
    files["manifest.json"] = {
        "schema": _SCHEMA,
        "bundle_name": finished.name,
        "created_at_utc": created,
        "reason": reason,
        "backend": backend,
        "event_count": len(events),
        "files": ["manifest.json", *files],
    }
    try:
        for name, content in files.items():
            (unfinished / name).write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
        unfinished.rename(finished)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    _retain(folder, finished, max_dumps, max_total_mb << 20)
    return finished


def _places(folder: Path, name: str) -> tuple[Path, Path]:
    # Not a number that was removed meanwhile: the order of names is the order of time.
    last = max((_order(path)[1] for path in folder.glob(f"{name}_*")), default=0)
    for sequence in range(last + 1, last + 1000):
        unfinished, finished = folder / f".{name}_{sequence}.tmp", folder / f"{name}_{sequence}"
        try:
            unfinished.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return unfinished, finished
    raise OSError(f"{folder}: there are a thousand unfinished bundles of this second")


def _order(path: Path) -> tuple[str, int]:
    """By the time in its name, then by its number."""
    front, _, number = path.name.rpartition("_")
    return front.removeprefix(PREFIX).partition("_")[0], int(number) if number.isdecimal() else 0


def _retain(folder: Path, newest: Path, most: int, most_bytes: int) -> None:
    """The oldest go first; the newest always stays."""
    found = (path for path in folder.glob(f"{PREFIX}*") if path.is_dir() and path != newest)
    older = sorted(found, key=_order)
    total = sum(_size(path) for path in [newest, *older])
    while older and (len(older) >= max(most, 1) or total > most_bytes):
        total -= _size(older[0])
        shutil.rmtree(older.pop(0), ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
