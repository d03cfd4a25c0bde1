"""The exports that these tests read: written once by the `report` crate from the timelines of its own tests, one of
which has names that try to break out of every format."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    cargo = ["cargo", "run", "--locked", "--quiet", "-p", "inferscope-report", "--example", "exports", "--", folder]
    subprocess.run(cargo, cwd=ROOT, check=True)
    return folder
