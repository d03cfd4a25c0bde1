"""A recorded trace, read with the standard library alone: the Chrome JSON and the analysis that the command exports.
Times are nanoseconds of CLOCK_MONOTONIC, as the workloads' own are."""

from __future__ import annotations

import bisect
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
SCOPES = ("scope", "step")


@dataclass
class Slice:
    name: str
    category: str
    pid: int
    tid: int
    start: int
    end: int
    args: dict[str, Any] = field(default_factory=dict)


def nanos(micros: float) -> int:
    return round(micros * 1000)


class Trace:
    def __init__(self, command: Path, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        file = folder.with_name(folder.name + ".chrome.json")
        self._call([command, "export", folder, "--format", "chrome", "--output", file], environ)
        document = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        other = document["otherData"]
        start = int(other["start_unix_ns"]) - self.manifest["clock"]["unix_minus_mono_ns"]
        self.notes: str = other["notes"]
        # Samples from outside that a busy machine had no time for are losses too, but nobody recorded them.
        outside = ("stacks:", "threads:", "memory:", "devices:")
        self.losses = [line for line in other["losses"].splitlines() if not line.startswith(outside)]
        self.slices = [
            Slice(
                event["name"],
                event["cat"],
                event["pid"],
                event["tid"],
                start + nanos(event["ts"]),
                start + nanos(event["ts"]) + nanos(event.get("dur", 0.0)),
                event.get("args", {}),
            )
            for event in document["traceEvents"]
            if event["ph"] in "Xi" and "cat" in event
        ]
        self.processes = {
            event["pid"]: event["args"]["name"]
            for event in document["traceEvents"]
            if event["ph"] == "M" and event["name"] == "process_name"
        }
        said = self._call([command, "analyze", folder, "--format", "json"], environ)
        self.analysis: dict[str, Any] = json.loads(said)

    @staticmethod
    def _call(words: list[object], environ: dict[str, str]) -> str:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environ, timeout=300)
        assert done.returncode == 0, f"{words[1]}: {done.stderr[-800:]}"
        return done.stdout

    def of(self, *categories: str) -> list[Slice]:
        return sorted((one for one in self.slices if one.category in categories), key=lambda one: one.start)

    @property
    def devices(self) -> list[str]:
        """What CUPTI told of the devices, by name."""
        return [device["name"] for process in self.manifest["processes"] for device in process.get("devices", [])]

    @property
    def work(self) -> dict[str, Any]:
        found = self.analysis.get("gpu_work")
        assert found, f"nothing of a GPU is in the trace: {self.notes} {self.collectors}"
        return found

    @property
    def kernels(self) -> list[Slice]:
        return self.of("kernel")

    @property
    def calls(self) -> list[Slice]:
        return self.of("cuda_runtime", "cuda_driver")

    def asked_in(self, scope: str, *categories: str) -> list[Slice]:
        """Work whose call lies in a scope or step of that name, whenever it ran."""
        ranges = sorted((one.start, one.end) for one in self.slices if one.name == scope and one.category in SCOPES)
        starts = [start for start, _ in ranges]

        def inside(time: int) -> bool:
            place = bisect.bisect_right(starts, time) - 1
            return place >= 0 and time <= ranges[place][1]

        asked = {one.args.get("correlation") for one in self.calls if inside(one.start)}
        asked.discard(None)
        return [one for one in self.of(*categories) if one.args.get("correlation") in asked]

    @property
    def collectors(self) -> list[dict[str, Any]]:
        return [line for process in self.manifest["processes"] for line in process.get("collectors", [])]

    @property
    def bytes_per_event(self) -> float:
        """All tables on disk, for each piece of work and each call."""
        size = sum(file.stat().st_size for file in self.folder.glob("*.parquet"))
        return round(size / max(len(self.of(*WORK)) + len(self.calls), 1), 1)
