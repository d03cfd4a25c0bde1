"""What the tests of NVTX share: a script is recorded, and its ranges are looked at by name."""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import Recorded, Trace, environment, inferscope, signalled  # noqa: E402

__all__ = ["Ranges", "environment", "ranges"]

NVTX = 8


class Ranges:
    """What a script recorded, by name."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.trace = recorded.trace
        self.rows = recorded.trace.slices(NVTX)
        self.names = Counter(row["text"] for row in self.rows)

    def one(self, name: str) -> dict[str, Any]:
        (row,) = [row for row in self.rows if row["text"] == name]
        return row

    def args(self, name: str) -> Any:
        return json.loads(self.one(name)["args"] or "{}")

    def said(self) -> Any:
        """What the script printed, as JSON."""
        return json.loads(self.recorded.out)

    def losses(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for row in self.trace.table("losses"):
            if row["collector"] == "nvtx":
                found[row["reason"]] += row["count"]
        return dict(found)

    def inside(self, inner: str, outer: str) -> bool:
        a, b = self.one(inner), self.one(outer)
        ends = [row["start_ns"] + row["dur_ns"] for row in (a, b)]
        return a["thread"] == b["thread"] and a["start_ns"] >= b["start_ns"] and ends[0] <= ends[1]


def ranges(folder: Path, text: str, code: int = 0) -> Ranges:
    """Records a script to its end."""
    script = folder / "script.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\n" + dedent(text), encoding="utf-8")
    done = inferscope("run", "--output", folder / "trace", "--", sys.executable, script)
    assert done.returncode == code or (code < 0 and signalled(done.returncode, signal.Signals(-code))), (
        done.stderr.decode()
    )
    return Ranges(Recorded(done.returncode, done.stdout, done.stderr, Trace(folder / "trace")))
