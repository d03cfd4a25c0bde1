"""Runs pytest and notes each test as it begins and each failure as it happens, into the file that is its first
argument: what is known of a run even if pytest itself is killed. The other arguments are pytest's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest


class Notes:
    def __init__(self, file: Path) -> None:
        self.file = file.open("a", encoding="utf-8")

    def note(self, **what: str) -> None:
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note(begins=nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.note(ends=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            part = "" if report.when == "call" else f" (its {report.when})"
            self.note(failed=f"{report.nodeid}{part}", why=why(report.longrepr))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.note(failed=f"{report.nodeid} (cannot be read)", why=why(report.longrepr))


def why(longrepr: Any) -> str:
    """The first line of the exception, or the last of whatever else there is."""
    crash = getattr(longrepr, "reprcrash", None)
    lines = (crash.message.strip().splitlines()[:1] if crash else str(longrepr).strip().splitlines()[-1:]) or [""]
    return lines[0]


if __name__ == "__main__":
    # As with `python -m pytest`: this script's own folder is nothing that the tests may import from.
    sys.path[0] = str(Path.cwd())
    sys.exit(pytest.main(sys.argv[2:], plugins=[Notes(Path(sys.argv[1]))]))
