"""What `dump_segment` says about a segment, as Python objects, and the checks that every recording has to pass."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEPARATOR = "\x1f"
_ESCAPE = re.compile(r"\\(.)")
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


@dataclass
class Event:
    kind: str
    fields: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        try:
            value = self.fields[name]
        except KeyError:
            raise AttributeError(name) from None
        return int(value) if name in NUMBERS else value

    @property
    def function(self) -> str:
        """Of a call: the function's name without its file."""
        return self.fields["name"].split(SEPARATOR)[0]

    @property
    def file(self) -> str:
        return self.fields["name"].split(SEPARATOR)[1]

    @property
    def tags(self) -> Any:
        return json.loads(self.fields["args"]) if self.fields["args"] else None


NUMBERS = {
    "thread", "time", "id", "parent", "begin", "duration", "depth", "ticks", "end_ticks", "dropped", "errors",
    "unpaired", "cut", "overflow", "records", "lost", "number",
}  # fmt: skip


@dataclass
class Span:
    """A scope or step put together from its begin and its end."""

    name: str
    id: int
    parent: int
    begin: int
    thread: int
    step: bool
    tags: Any
    end: int | None = None


@dataclass
class Segment:
    pid: int
    program: str
    python: str
    status: dict[str, Event] = field(default_factory=dict)
    rings: list[Event] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @property
    def calls(self) -> list[Event]:
        return self.of("call")

    @property
    def open_calls(self) -> list[str]:
        return [event.function for event in self.of("open")]

    @property
    def marks(self) -> list[Event]:
        return self.of("mark")

    @property
    def spans(self) -> dict[int, Span]:
        """Scopes and steps by id, in the order of their begins."""
        spans: dict[int, Span] = {}
        for event in self.of("scope-begin", "step-begin"):
            step = event.kind == "step-begin"
            spans[event.id] = Span(event.name, event.id, event.parent, event.time, event.thread, step, event.tags)
        for event in self.of("scope-end", "step-end"):
            span = spans[event.id]
            assert span.end is None, f"{span} ended twice"
            assert (span.name, span.step) == (event.name, event.kind == "step-end")
            assert span.begin == event.begin <= event.time
            span.end = event.time
        return dict(sorted(spans.items()))

    def tree(self) -> list[Any]:
        """Scopes as nested lists of names, in the order of their begins: [["outer", ["inner"]]]."""
        spans = self.spans
        nodes = {number: [span.name] for number, span in spans.items()}
        roots: list[Any] = []
        for number, span in spans.items():
            (nodes[span.parent] if span.parent else roots).append(nodes[number])
        return roots

    def times(self, function: str) -> int:
        """How often a function was recorded."""
        return sum(call.function == function for call in self.calls)

    def check_calls(self) -> None:
        """Every call lies wholly inside the one around it, at the depth that it says."""
        assert all(ring.lost == 0 for ring in self.rings), "this check needs every record"
        by_thread: dict[int, list[Event]] = {}
        for call in self.of("call", "c-call"):
            by_thread.setdefault(call.thread, []).append(call)
        opened = {}
        for call in self.of("open"):
            opened.setdefault(call.thread, []).append(call)
        for thread, calls in by_thread.items():
            floor = len(opened.get(thread, []))
            around: list[Event] = []
            for call in sorted(calls, key=lambda call: (call.ticks, call.depth)):
                assert call.ticks <= call.end_ticks
                while around and around[-1].depth >= call.depth:
                    last = around.pop()
                    assert last.end_ticks <= call.ticks, f"{last} overlaps {call}"
                if around:
                    assert call.depth == around[-1].depth + 1, f"{call} is not right inside {around[-1]}"
                    assert call.end_ticks <= around[-1].end_ticks, f"{call} outlives {around[-1]}"
                else:
                    assert call.depth <= floor, f"{call} is inside nothing"
                around.append(call)

    def check_clean(self) -> None:
        """Nothing was dropped, nothing went wrong."""
        for name, status in self.status.items():
            counts = {key: getattr(status, key) for key in ("dropped", "errors", "unpaired", "cut", "overflow")}
            assert not any(counts.values()), f"{name}: {counts}"


def read(dump: Path, path: Path) -> Segment:
    text = subprocess.run([dump, path], capture_output=True, check=True).stdout.decode("utf-8")
    segment = Segment(0, "", "")
    for line in text.split("\n")[:-1]:
        kind, *parts = line.split("\t")
        fields = dict(part.split("=", 1) for part in parts)
        event = Event(kind, {key: _ESCAPE.sub(lambda m: _PLAIN[m[1]], value) for key, value in fields.items()})
        if kind == "process":
            segment.pid, segment.program, segment.python = int(event.fields["pid"]), event.program, event.python
        elif kind == "status":
            segment.status[event.collector] = event
        elif kind == "ring":
            segment.rings.append(event)
        else:
            segment.events.append(event)
    return segment
