"""What every check needs: the command, a place for traces, and how a workload is run with and without us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorded import Trace
from results import Results

WORKLOADS = Path(__file__).with_name("workloads")
# Fixtures are kept in the repository.
MOST_FIXTURE_BYTES = 300_000


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def known(self) -> dict[str, Any]:
        """What the workload said about itself: its last line of JSON."""
        lines = [line for line in self.out.splitlines() if line.startswith("{")]
        assert lines, f"the workload said nothing (exit {self.code}): {self.err[-800:]}"
        return json.loads(lines[-1])


@dataclass
class Case:
    command: Path
    environ: dict[str, str]
    folder: Path
    results: Results
    # Without a GPU: the workloads run, what only a GPU can show is not checked.
    dry: bool
    minutes: float

    def python(self, script: str, *arguments: object) -> list[str]:
        return [sys.executable, str(WORKLOADS / script), *map(str, arguments)]

    def bare(self, script: str, *arguments: object) -> list[str]:
        """An interpreter that has neither InferScope nor anything else installed."""
        return [sys.executable, "-I", "-S", str(WORKLOADS / script), *map(str, arguments)]

    def run(self, words: list[str], **environ: str) -> Done:
        done = subprocess.run(
            words, capture_output=True, text=True, env=self.environ | environ, cwd=WORKLOADS, timeout=900
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def record(self, name: str, words: list[str], *options: str) -> Done:
        folder = self.folder / name
        return self.run([str(self.command), "run", "--quiet", "--output", str(folder), *options, "--", *words])

    def trace(self, name: str) -> Trace:
        return Trace(self.command, self.folder / name, self.environ)

    def check(self, name: str, work: Any) -> None:
        self.results.check(name, work)

    def keep(self, name: str) -> None:
        """Packs a trace for the repository."""
        target = self.results.folder / f"{name}.tar.gz"
        packed(self.folder / name, target)
        size = os.path.getsize(target)
        assert size <= MOST_FIXTURE_BYTES, f"{target.name} has {size} bytes, a fixture at most {MOST_FIXTURE_BYTES}"
        self.results.say(f"     {target.name}: {size} bytes")


def packed(trace: Path, target: Path) -> None:
    """Tables, manifest and what was written of its death; no report."""
    with tarfile.open(target, "w:gz") as archive:
        for file in sorted(trace.rglob("*")):
            kept = file.suffix == ".parquet" or file.name == "manifest.json" or file.parent.name.startswith("oom_dump_")
            if kept and file.is_file():
                archive.add(file, arcname=f"{trace.name}/{file.relative_to(trace)}")


def equal(found: object, expected: object, what: str) -> None:
    assert found == expected, f"{what}: {found}, expected {expected}"
