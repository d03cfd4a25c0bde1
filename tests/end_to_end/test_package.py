"""The package as it is installed: one version everywhere, no library that a user's machine may lack, everything
documented. What is in the wheel that is shipped, and its size, is in tests/wheel."""

import importlib.metadata
import re
import subprocess
from pathlib import Path

import inferscope
import pytest
from recording import INFERSCOPE, REPOSITORY

PACKAGE = Path(inferscope.__file__).parent
# What every Linux with the wheel's glibc has.
ALWAYS_THERE = {
    "linux-vdso.so.1",
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
}


@pytest.mark.every_python
def test_one_version_everywhere():
    declared = re.search(r'^version = "(.+)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE).group(1)
    told = subprocess.run([INFERSCOPE, "--version"], capture_output=True, text=True).stdout.split()
    assert inferscope.__version__ == importlib.metadata.version("inferscope") == told[-1] == declared


@pytest.mark.every_python
def test_the_in_target_library_needs_nothing():
    assert needed(PACKAGE / "_native.abi3.so") <= ALWAYS_THERE


def test_the_command_needs_nothing():
    assert needed(INFERSCOPE) <= ALWAYS_THERE


def needed(binary: Path) -> set[str]:
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    return {Path(line.split()[0]).name for line in listed.splitlines() if "ld-linux" not in line}


def test_everything_public_is_documented_and_typed():
    for name in inferscope.__all__:
        if name != "__version__":
            assert getattr(inferscope, name).__doc__, f"inferscope.{name} has no documentation"
