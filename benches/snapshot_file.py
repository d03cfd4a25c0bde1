"""Writes a memory snapshot of PyTorch as large as one likes, without holding it: the pickle's own operations, as
`torch.cuda.memory._dump_snapshot` leaves them, where keys and stacks are written once and then referred to. Two
thousand blocks of one segment are freed and allocated again in turn, by a thousand lines.

    python3 benches/snapshot_file.py large.pickle --megabytes 1000
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

SLOTS, STACKS, DEPTH = 2000, 1000, 12
BLOCK = 2 << 20
ADDRESS = 1 << 33
START_US = 1_780_000_000_000_000
MARK, EMPTY_DICT, EMPTY_LIST, SETITEMS, APPENDS, STOP = b"(", b"}", b"]", b"u", b"e", b"."
FALSE = b"\x89"


class Memo:
    """Values that are written once: the first time whole, then by their number."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}

    def put(self, key: object, whole: bytes) -> bytes:
        if key in self.numbers:
            number = self.numbers[key]
            return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)
        number = self.numbers[key] = len(self.numbers)
        return whole + b"r" + struct.pack("<I", number)

    def text(self, value: str) -> bytes:
        data = value.encode()
        return self.put(value, b"X" + struct.pack("<I", len(data)) + data)


def number(value: int) -> bytes:
    if value < 256:
        return b"K" + bytes([value])
    if value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes((value.bit_length() + 8) // 8, "little")
    return b"\x8a" + bytes([len(data)]) + data


def frames(memo: Memo, stack: int) -> bytes:
    if ("stack", stack) in memo.numbers:
        return memo.put(("stack", stack), b"")
    rows = []
    for level in range(DEPTH):
        row = EMPTY_DICT + MARK + memo.text("name") + memo.text(f"function_{level}_{stack % 40}")
        row += memo.text("filename") + memo.text(f"/srv/model/part_{level}.py") + memo.text("line")
        rows.append(row + number(10 + stack % 200) + SETITEMS)
    return memo.put(("stack", stack), EMPTY_LIST + MARK + b"".join(rows) + APPENDS)


def event(memo: Memo, action: str, slot: int, time_us: int, stack: int) -> bytes:
    out = EMPTY_DICT + MARK + memo.text("action") + memo.text(action) + memo.text("addr")
    out += number(ADDRESS + slot * BLOCK) + memo.text("size") + number(BLOCK) + memo.text("stream") + number(0)
    return out + memo.text("time_us") + number(time_us) + memo.text("frames") + frames(memo, stack) + SETITEMS


def segment(memo: Memo, last: list[int]) -> bytes:
    # In the order in which it is read: what comes first defines what later parts refer to.
    out = EMPTY_DICT + MARK
    whole = SLOTS * BLOCK
    numbers = {"device": 0, "address": ADDRESS, "total_size": whole, "allocated_size": whole, "active_size": whole}
    for key, value in (numbers | {"stream": 0}).items():
        out += memo.text(key) + number(value)
    out += memo.text("segment_type") + memo.text("large") + memo.text("is_expandable") + FALSE
    out += memo.text("blocks") + EMPTY_LIST + MARK
    for slot, stack in enumerate(last):
        out += EMPTY_DICT + MARK + memo.text("address") + number(ADDRESS + slot * BLOCK) + memo.text("size")
        out += number(BLOCK) + memo.text("requested_size") + number(BLOCK) + memo.text("state")
        out += memo.text("active_allocated") + memo.text("frames") + frames(memo, stack) + SETITEMS
    return out + APPENDS + SETITEMS


def write(file: Path, size: int) -> int:
    """How many blocks were handed out."""
    memo, now, allocs = Memo(), START_US, 0
    last = [0] * SLOTS
    with file.open("wb") as out:
        out.write(b"\x80\x02" + EMPTY_DICT + MARK + memo.text("device_traces") + EMPTY_LIST + MARK + EMPTY_LIST)
        while out.tell() < size or allocs < SLOTS:
            part = [MARK]
            for _ in range(1000):
                slot, stack, now = allocs % SLOTS, allocs * 7 % STACKS, now + 5
                if allocs >= SLOTS:
                    part.append(event(memo, "free_requested", slot, now - 2, last[slot]))
                    part.append(event(memo, "free_completed", slot, now - 1, last[slot]))
                part.append(event(memo, "alloc", slot, now, stack))
                last[slot], allocs = stack, allocs + 1
            out.write(b"".join(part) + APPENDS)
        out.write(APPENDS + memo.text("segments") + EMPTY_LIST + MARK + segment(memo, last) + APPENDS + SETITEMS + STOP)
    return allocs


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    options.add_argument("--megabytes", type=int, default=1000)
    chosen = options.parse_args()
    print(write(chosen.file, chosen.megabytes * 1_000_000))


if __name__ == "__main__":
    main()
