"""Asks the command about one trace: the analysis as JSON, with what a replay of the unchanged steps is off by."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

OFF_BY = re.compile(r"off by ([0-9.]+) %")
# A small trace takes a fraction of a second.
MOST_SECONDS = 120


def analyse(command: Path, trace: Path, environ: dict[str, str] | None = None) -> dict[str, Any]:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(command), *words], capture_output=True, text=True, env=environ, timeout=MOST_SECONDS)

    done = call("analyze", str(trace), "--format", "json")
    assert done.returncode == 0, f"{trace.name}: analyze ended with {done.returncode}: {done.stderr[-600:].strip()}"
    analysis: dict[str, Any] = json.loads(done.stdout)
    damaged = [line for line in json.dumps(analysis["health"]).split('"') if "is damaged" in line]
    assert not damaged, f"{trace.name}: {damaged[0]}"
    if not analysis.get("replay"):
        # As `whatif` says it, of a change that changes nothing. Where there is no GPU work, it says nothing.
        said = call("whatif", str(trace), "scale kernel:* 1").stdout
        if off := OFF_BY.search(said):
            analysis["replay"] = {"error_percent": float(off[1])}
    return analysis
