"""Pictures by the native command: events go in as JSON lines, SVG comes out. Nothing is drawn here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from html import escape
from typing import Any

from . import _child
from ._errors import MemoryProfilingError
from ._event import TelemetryEvent

_LONGEST_NAME = 200


def svg(kind: str, events: Iterable[TelemetryEvent]) -> str:
    """`inferscope plot --kind KIND` of these events. MemoryProfilingError: there is nothing to draw."""
    lines = "".join(f"{json.dumps(_record(event))}\n" for event in events)
    # By its format, `-` is stdout; what it says besides goes to stderr.
    arguments = ["plot", "-", "--kind", kind, "--format", "svg", "--output", "-"]
    done = subprocess.run(
        [_child.command(), *arguments], input=lines, capture_output=True, check=False, encoding="utf-8"
    )
    if done.returncode != 0:
        raise MemoryProfilingError(_child.said(done.stderr))
    return done.stdout


def page(title: str, drawings: Iterable[str]) -> str:
    """A page with nothing from elsewhere."""
    body = "\n".join(f"<figure>{drawing}</figure>" for drawing in drawings)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>:root{color-scheme:light dark}body{font:14px system-ui,sans-serif;max-width:1040px;margin:2em auto}"
        "figure{margin:2em 0}svg{max-width:100%;height:auto}</style>"
        f"</head><body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def note(text: str) -> str:
    """A line in place of a drawing."""
    return f"<p>{escape(_plain(text))}</p>"


def _record(event: TelemetryEvent) -> dict[str, Any]:
    """As version 4: what was not measured may be null."""
    record = event.to_dict()
    metadata = {} if event.process_bytes is None else {"process_bytes": event.process_bytes}
    record.update(
        schema_version=4,
        session_id=_plain(event.session_id or "") or "inferscope.memory",
        context=None if event.context is None else _plain(event.context),
        metadata={"memory_capabilities": {}, **metadata},
    )
    return record


def _plain(text: str) -> str:
    """Half a character is none in JSON."""
    return text[:_LONGEST_NAME].encode("utf-8", "replace").decode("utf-8")
