"""Records programs on the GPU that tests/fake_cupti plays, and reads what the trace says about it. No test is here."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from recording import REPOSITORY, Recorded, Trace, environment

sys.path.insert(0, str(REPOSITORY / "tests" / "fake_cupti"))

import build

API_CALL, OVERHEAD = 7, 10
KERNEL, MEMCPY, MEMSET, SYNC, MIGRATION = 1, 2, 3, 4, 5
# The first of each layout that matters, and the newest.
VERSIONS = ("11.8", "12.1", "12.4", "12.6", "12.8", "13.0", "13.1", "13.3", "13.4")
# In Python: the driver as any program gets it, and `do`, which plays lines of a script.
PRELUDE = """
    import ctypes
    driver = ctypes.CDLL("libcuda.so.1")
    def do(text): driver.fake_do(text.encode())
"""


class Libraries:
    """What gcc built so far in this session, by what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.built: dict[tuple[Any, ...], Path] = {}

    def driver(self) -> Path:
        if ("driver",) not in self.built:
            self.built["driver",] = build.build_driver(self.folder / "driver").parent
        return self.built["driver",]

    def cupti(self, cuda: str, without: Sequence[str] = (), grown: int = 0) -> Path:
        wanted = (cuda, tuple(without), grown)
        if wanted not in self.built:
            folder = self.folder / f"cupti-{len(self.built)}"
            self.built[wanted] = build.build_cupti(folder, cuda, without, grown)
        return self.built[wanted]

    def without_threads(self) -> Path:
        if ("nothreads",) not in self.built:
            self.built["nothreads",] = build.build_nothreads(self.folder / "nothreads")
        return self.built["nothreads",]

    def runtime(self, major: int) -> Path:
        if ("runtime", major) not in self.built:
            self.built["runtime", major] = build.build_runtime(self.folder / f"runtime-{major}", major)
        return self.built["runtime", major]


@dataclass
class OnGpu:
    """A recording of one script."""

    recorded: Recorded
    log: list[str] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        return self.recorded.trace

    def work(self, kind: int | None = None) -> list[dict[str, Any]]:
        """The gpu table with its names, in the order of time."""
        names = self.trace.names()
        rows = [row | {"text": names[row["name"]]} for row in self.trace.table("gpu") if kind in (None, row["kind"])]
        return sorted(rows, key=lambda row: row["start_ns"])

    def kernels(self) -> Counter[str]:
        return Counter(row["text"] for row in self.work(KERNEL))

    def calls(self) -> Counter[str]:
        return Counter(row["text"] for row in self.trace.slices(API_CALL))

    def collector(self, name: str = "gpu", process: int = 0) -> dict[str, Any]:
        (line,) = [line for line in self.trace.manifest["processes"][process]["collectors"] if line["name"] == name]
        return line

    def notes(self) -> str:
        return "\n".join(self.trace.notes)

    def lost(self) -> int:
        return self.trace.lost()

    def called(self, function: str) -> int:
        """How often the workload called this function of CUPTI."""
        return sum(line.split(" ", 1)[1] == function for line in self.log)


class FakeGpu:
    """Records programs whose CUDA driver and CUPTI are the stand-ins."""

    def __init__(self, libraries: Libraries, record: Callable[..., Recorded], folder: Path) -> None:
        self.libraries = libraries
        self.record = record
        self.folder = folder
        self.log = folder / "cupti.log"

    @property
    def app(self) -> Path:
        return self.libraries.driver() / "app"

    def script(self, text: str) -> Path:
        path = self.folder / "script.txt"
        path.write_text(dedent(text))
        return path

    def environment(self, text: str, cupti: Path | None, **extra: str) -> dict[str, str]:
        folders = [self.libraries.driver()] + ([cupti.parent] if cupti else [])
        return environment(
            LD_LIBRARY_PATH=":".join(map(str, folders)),
            FAKE_CUPTI_SCRIPT=str(self.script(text)),
            FAKE_CUPTI_LOG=str(self.log),
            **extra,
        )

    def python(self, text: str) -> Path:
        """A Python program with the driver in it."""
        path = self.folder / "workload.py"
        path.write_text(dedent(PRELUDE) + dedent(text))
        return path

    def play(
        self,
        text: str,
        cuda: str = "13.0",
        cupti: Path | bool | None = True,
        command: Sequence[object] = (),
        options: Sequence[object] = (),
        **extra: str,
    ) -> OnGpu:
        """Records the program `app` with a script, or another command on the same GPU. `cupti=None`: there is none."""
        library = self.libraries.cupti(cuda) if cupti is True else cupti or None
        env = self.environment(text, library, **extra)
        recorded = self.record(*(command or (self.app,)), options=tuple(options), env=env)
        log = self.log.read_text().splitlines() if self.log.exists() else []
        return OnGpu(recorded, log)
