"""Writes a memory snapshot as `torch.cuda.memory._dump_snapshot` does, of a small service that was never run: weights,
and requests that allocate, free and, with --leak, keep a result. Its allocator follows PyTorch's rules for blocks of
more than a megabyte.

    python3 tests/snapshots/write_snapshot.py leaking.pickle --leak --requests 24
"""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

MIB = 1 << 20
START_US = 1_780_000_000_000_000


def frames(function: str, line: int, file: str = "serve.py") -> list[dict]:
    inner = {"name": "at::detail::empty_cuda(...)", "filename": "??", "line": 0}
    outer = {"name": "<module>", "filename": "serve.py", "line": 60}
    return [inner, {"name": function, "filename": file, "line": line}, outer]


class Allocator:
    """Best fit in segments of 20 MiB, or of its own size from 10 MiB on; more than 1 MiB left over is split off."""

    def __init__(self) -> None:
        self.segments: list[list[dict]] = []
        self.events: list[dict] = []
        self.now = START_US

    def record(self, action: str, address: int, size: int, stack: list[dict]) -> None:
        self.now += 7
        event = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.now, "frames": stack}
        self.events.append(event)

    def alloc(self, size: int, stack: list[dict]) -> dict:
        free = [block for segment in self.segments for block in segment if block["state"] == "inactive"]
        fitting = [block for block in free if block["size"] >= size]
        if not fitting:
            total = 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            address = (1 << 33) + len(self.segments) * (1 << 30)
            fitting = [{"address": address, "size": total, "requested_size": 0, "state": "inactive", "frames": []}]
            self.segments.append(fitting[:])
            self.record("segment_alloc", address, total, stack)
        block = min(fitting, key=lambda one: (one["size"], one["address"]))
        segment = next(one for one in self.segments if block in one)
        if block["size"] - size > MIB:
            rest = dict(block, address=block["address"] + size, size=block["size"] - size)
            segment.insert(segment.index(block) + 1, rest)
            block["size"] = size
        block.update(state="active_allocated", requested_size=size, frames=stack)
        self.record("alloc", block["address"], size, stack)
        return block

    def free(self, block: dict) -> None:
        for action in ("free_requested", "free_completed"):
            self.record(action, block["address"], block["requested_size"], block["frames"])
        block.update(state="inactive", frames=[])
        segment = next(one for one in self.segments if block in one)
        at = segment.index(block)
        for low, high in ((at, at + 1), (at - 1, at)):
            if low >= 0 and high < len(segment) and {segment[low]["state"], segment[high]["state"]} == {"inactive"}:
                segment[low]["size"] += segment.pop(high)["size"]


def snapshot(requests: int, leak: bool) -> dict:
    allocator = Allocator()
    annotations = []
    for layer in range(12):
        allocator.alloc(16 * MIB, frames("load", 12 + layer % 2, "model.py"))
    for request in range(requests):
        annotation = {"name": f"ProfilerStep#{request}", "device": 0}
        annotations.append(annotation | {"stage": "START", "time_us": allocator.now + 1})
        hidden = allocator.alloc(8 * MIB, frames("forward", 44, "model.py"))
        logits = allocator.alloc((3 + request % 3) * MIB, frames("forward", 51, "model.py"))
        result = allocator.alloc(2 * MIB, frames("handle", 31))
        for block in (hidden, logits) if leak else (hidden, logits, result):
            allocator.free(block)
        annotations.append(annotation | {"stage": "END", "time_us": allocator.now + 1})
    segments = []
    for blocks in allocator.segments:
        active = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
        segments.append(
            {
                "device": 0,
                "address": blocks[0]["address"],
                "total_size": sum(block["size"] for block in blocks),
                "allocated_size": active,
                "active_size": active,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "blocks": blocks,
            }
        )
    settings = {"expandable_segments": False, "max_split_size": -1, "garbage_collection_threshold": 0.0}
    return {
        "segments": segments,
        "device_traces": [allocator.events],
        "allocator_settings": settings,
        "external_annotations": annotations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--leak", action="store_true", help="keep the result of every request")
    parser.add_argument("--protocol", type=int, default=4)
    asked = parser.parse_args()
    with asked.file.open("wb") as file:
        pickle.dump(snapshot(asked.requests, asked.leak), file, protocol=asked.protocol)


if __name__ == "__main__":
    main()
