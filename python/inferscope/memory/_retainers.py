"""What keeps the largest live tensors: `retainers()` on demand, and with `--retainers` when the program ends, written
beside the trace. Types, names of variables and attributes, sizes and addresses of storages are read; no values."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from ._retainer_walk import Clock, keepers, tensors

# Tensors whose keepers are looked for, the largest ones: what a leak has left is among them.
MOST_TENSORS = 4096
MOST_GROUPS = 64
# Of a group, for whoever knows which line allocated them.
MOST_ADDRESSES = 64
SECONDS = 5.0


def _size(size: float) -> str:
    """As the command says it: `48.0 MiB`."""
    units = ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:,.{0 if units[0] == 'B' else 2 if size < 10 else 1 if size < 100 else 0}f} {units[0]}"


@dataclass(frozen=True)
class Retainer:
    """Tensors that are kept in the same way."""

    # "list in closure variable kept of handle (serve.py:31)".
    kept_by: str
    # Of the function that keeps them, where one does.
    file: str | None
    line: int | None
    device: str
    tensors: int
    bytes: int
    largest_bytes: int
    # Where the storages of the largest ones begin.
    addresses: tuple[int, ...] = ()

    def __str__(self) -> str:
        count = "1 tensor" if self.tensors == 1 else f"{self.tensors:,} tensors"
        return f"{_size(self.bytes)} in {count} on {self.device}, kept by {self.kept_by}"


@dataclass(frozen=True)
class Retainers:
    """The most bytes first."""

    groups: tuple[Retainer, ...] = ()
    # All live tensors, one for each storage, and those whose keepers were looked for.
    tensors: int = 0
    bytes: int = 0
    looked_at: int = 0
    seconds: float = 0.0
    # False: time was up before everything was seen.
    complete: bool = True
    pid: int = field(default_factory=os.getpid)

    def __str__(self) -> str:
        head = f"{self.tensors:,} live tensors, {_size(self.bytes)}"
        more = "" if self.complete else " (time was up before all were seen)"
        return "\n".join([head + more, *(f"  {group}" for group in self.groups)])


def retainers(*, seconds: float = SECONDS, most: int = MOST_TENSORS, collect: bool = False) -> Retainers:
    """Looks at every object that the garbage collector knows, for at most `seconds`, and says what keeps the `most`
    largest live tensors of PyTorch. Other threads go on, slower; nothing is freed before it is done.

        print(inferscope.memory.retainers())

    `collect`: run the garbage collector first, so that tensors in unreachable cycles are not among them.
    """
    began = time.monotonic()
    clock = Clock(seconds)
    if collect:
        gc.collect()
    objects = gc.get_objects()
    try:
        all_tensors = tensors(objects, clock)
        found = all_tensors[: max(most, 0)]
        names = keepers(objects, found, clock)
    finally:
        objects.clear()
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, name in enumerate(names):
        groups.setdefault((name.text, name.file, name.line, found[place].device), []).append(place)
    kept = []
    for (text, file, line, device), places in groups.items():
        sizes = [found[place].size for place in places]
        addresses = tuple(found[place].address for place in places[:MOST_ADDRESSES])
        kept.append(Retainer(text, file, line, device, len(places), sum(sizes), max(sizes), addresses))
    kept.sort(key=lambda one: (-one.bytes, one.kept_by))
    total = sum(one.size for one in all_tensors)
    spent = round(time.monotonic() - began, 3)
    return Retainers(tuple(kept[:MOST_GROUPS]), len(all_tensors), total, len(found), spent, clock.complete)


def write(folder: str, found: Retainers) -> str:
    """Writes them into a trace, whole or not at all."""
    path = os.path.join(folder, f"retainers-{found.pid}.json")
    unfinished = f"{path}.tmp"
    with open(unfinished, "w", encoding="utf-8", errors="replace") as out:
        json.dump({"schema_version": 1, **asdict(found)}, out)
    os.replace(unfinished, path)
    return path


def write_at_exit() -> None:
    """Of the process that recorded, into its trace. What goes wrong here is not the program's business."""
    folder = os.environ.get("INFERSCOPE_TRACE")
    if not folder or "torch" not in sys.modules:
        return
    try:
        write(folder, retainers())
    except Exception as error:
        print(f"inferscope: what keeps tensors could not be found: {error!r}", file=sys.stderr)
