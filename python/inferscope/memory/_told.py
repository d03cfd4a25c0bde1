"""What the program tells its tracker: events and questions, as JSON lines that fit into a pipe at once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from ._child import LONGEST_LINE
from ._event import EVENT_TYPES

_LONGEST_TEXT = 500


def line(request: Mapping[str, Any]) -> bytes:
    # Half a character, which Python can hold and JSON cannot, becomes a question mark.
    return json.dumps(request, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def event(
    kind: str,
    *,
    collector: str = "inferscope.memory",
    device_id: int = -1,
    context: str | None = None,
    counters: Mapping[str, int] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> bytes:
    """An event of now. Metadata that is too long is left out, and the event says so."""
    if kind not in EVENT_TYPES:
        raise ValueError(f"unknown type of event {kind!r}: use one of {', '.join(sorted(EVENT_TYPES))}")
    request: dict[str, Any] = {
        "do": "event",
        "type": kind,
        "time_ns": time.time_ns(),
        "collector": collector[:_LONGEST_TEXT],
        "device_id": device_id,
        "counters": dict(counters or {}),
        "context": None if context is None else context[:_LONGEST_TEXT],
        "metadata": _plain(metadata),
    }
    written = line(request)
    if len(written) > LONGEST_LINE:
        written = line({**request, "metadata": {"metadata_too_long": True}})
    return written if len(written) <= LONGEST_LINE else line({**request, "context": None, "metadata": {}})


def _plain(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Only what JSON has: whatever the program hands over, telling it does not fail."""
    try:
        found = json.loads(json.dumps(dict(metadata or {}), default=str, allow_nan=False))
        return found if isinstance(found, dict) else {}
    except Exception:  # `__str__` of anything may raise anything.
        return {"metadata_unreadable": True}
