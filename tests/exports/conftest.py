"""The exports that these tests read: written once by the `report` crate from the timelines of its own tests, one of
which has names that try to break out of every format."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory, rust_example: Callable[[str], Path]) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    subprocess.run([rust_example("exports"), folder], check=True)
    return folder
