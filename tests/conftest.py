"""For all tests in Python: the small programs of the Rust workspace that write or read what they look at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def rust_example() -> Callable[[str], Path]:
    """Gives the path of an example. It is chosen from the whole workspace, as by `cargo test`, which gives its
    dependencies the same features: after `make test` has built the tests, nothing is left to compile."""

    def build(name: str) -> Path:
        command = ["cargo", "build", "--quiet", "--locked", "--workspace", "--example", name]
        subprocess.run(command, cwd=ROOT, check=True)
        return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples" / name

    return build
