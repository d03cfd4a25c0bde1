"""A trace against what its workload published: every record is a row, or a part of one, or counted as lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet

# Reasons for which records of the workload are missing.
_RECORDS = {"overwritten", "overwritten-during-restart", "unknown-record"}
_SCOPE = 1
# A workload that is killed may have published the end of a scope that it had not counted, and the begin of the next.
_UNCOUNTED = 2
# Python's garbage collector ran while the workload was imported: records that are no scopes, but may be lost as well.
_OTHERS = 16


@dataclass
class Account:
    state: str
    notes: list[str]
    # Records of the scopes that the workload counted, and the begin of the outer one.
    published: int
    present: int
    lost: int
    # Slices that are there more than once.
    twice: int

    def fault(self) -> str | None:
        if self.state not in ("complete", "recovered"):
            return f"the trace is {self.state}"
        if self.twice:
            return f"{self.twice} scopes are there twice"
        found = self.present + self.lost
        # The outer scope's end may be there too.
        most = self.published + _UNCOUNTED + 1 + min(self.lost, _OTHERS)
        if not self.published <= found <= most:
            return f"{self.published} records were published, {self.present} are there and {self.lost} counted as lost"
        return None


def account(trace: Path, scopes: int) -> Account:
    manifest = json.loads((trace / "manifest.json").read_bytes())
    names = dict(_rows(trace, "names", "id", "text"))
    closed: Counter[int] = Counter()
    whole: set[int] = set()
    opened: set[int] = set()
    for kind, name, number, parent, duration in _rows(trace, "slices", "kind", "name", "id", "parent", "dur_ns"):
        if kind != _SCOPE or names.get(name) not in ("outer", "inner"):
            continue
        if duration is None:
            opened.add(number)
            continue
        closed[number] += 1
        # Only a begin says what is around a scope: a row without that comes from its end alone.
        if parent is not None or names[name] == "outer":
            whole.add(number)
    present = len(closed) + len(whole) + len(opened - closed.keys())
    losses = _rows(trace, "losses", "collector", "reason", "count")
    lost = sum(count for collector, reason, count in losses if collector == "recorder" and reason in _RECORDS)
    twice = sum(1 for count in closed.values() if count > 1)
    notes = [note["text"] for note in manifest["notes"]]
    return Account(manifest["state"], notes, 2 * scopes + 1, present, lost, twice)


def _rows(trace: Path, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    spans = []
    for file in trace.glob(f"{table}.*.parquet"):
        first, last = map(int, file.name.split(".")[1].split("-"))
        spans.append((first, -last, file))
    covered = 0
    for _, last, file in sorted(spans):
        # Else a wider, compacted file has replaced it.
        if -last > covered:
            covered = -last
            read = pyarrow.parquet.read_table(file, columns=list(columns))
            yield from zip(*(read[column].to_pylist() for column in columns), strict=True)
