"""Packs recorded traces into one archive for the repository: tables and manifest of each program, without reports, and
the table of what must be said. `unpack.py` is the other end."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from catalogue import Program

# All of them together go into the repository.
MOST_BYTES = 12_000_000


class Pack:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.archive = tarfile.open(file, "w:gz")  # noqa: SIM115, closed by `close` when all programs have run
        self.programs: list[Program] = []

    def add(self, program: Program, folder: Path) -> int:
        """Adds a trace, and says how many bytes its files have."""
        size = 0
        for file in sorted(folder.iterdir()):
            if file.suffix == ".parquet" or file.name == "manifest.json":
                self.archive.add(file, arcname=f"{program.name}/{file.name}")
                size += file.stat().st_size
        self.programs.append(program)
        return size

    def close(self, suite: str) -> int:
        rows = [program.row() for program in self.programs]
        self._text("expected.json", json.dumps(rows, indent=1))
        self._text("suite.json", suite)
        self.archive.close()
        return self.file.stat().st_size

    def _text(self, name: str, text: str) -> None:
        data = (text + "\n").encode()
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        self.archive.addfile(entry, io.BytesIO(data))
