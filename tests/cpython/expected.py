"""The tests that cannot have the same outcome with `--calls`, from a file with a reason for each, one line a test:
`3.12 3.13 | test id, or its beginning and a star | reason`. A reason that begins with "sometimes" is for a test that
differs only now and then. An empty line and one that begins with # say nothing."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).resolve().parent / "calls.txt"


@dataclass(frozen=True)
class Expected:
    versions: tuple[str, ...]
    test: str
    reason: str

    def covers(self, test: str) -> bool:
        return fnmatchcase(test, self.test)

    @property
    def sometimes(self) -> bool:
        return self.reason.startswith("sometimes")


def read(file: Path = FILE) -> list[Expected]:
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    listed = []
    for line in lines:
        if line and not line.startswith("#"):
            versions, test, reason = (part.strip() for part in line.split("|", 2))
            assert versions and test and reason, f"{file.name}: {line}: versions, test and reason, please"
            listed.append(Expected(tuple(versions.split()), test, reason))
    return listed
