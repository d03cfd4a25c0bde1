"""The wheel itself: one for every Python, small in the workload, with nothing missing and no library that a
user's machine may lack."""

import importlib.metadata
import re
import subprocess
import zipfile
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
def test_the_in_target_library_is_small_and_needs_nothing():
    library = PACKAGE / "_native.abi3.so"
    assert library.stat().st_size <= 1_500_000
    assert needed(library) <= ALWAYS_THERE


def test_the_command_needs_nothing():
    assert needed(INFERSCOPE) <= ALWAYS_THERE


def needed(binary: Path) -> set[str]:
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    return {Path(line.split()[0]).name for line in listed.splitlines() if "ld-linux" not in line}


def test_the_wheel_serves_every_python_and_is_complete():
    (wheel,) = (REPOSITORY / "dist").glob("inferscope-*.whl")
    assert re.fullmatch(r"inferscope-[\d.]+-cp310-abi3-(manylinux_\d+_\d+|linux)_x86_64\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (command,) = [name for name in names if name.endswith(".data/scripts/inferscope")]
        assert archive.getinfo(command).external_attr >> 16 & 0o111, "the command is executable"
    modules = {f"inferscope/{path.relative_to(REPOSITORY / 'python' / 'inferscope')}" for path in sources()}
    assert modules <= names, modules - names
    assert {"inferscope/py.typed", "inferscope/_native.abi3.so", "inferscope/_inject/sitecustomize.py"} <= names
    assert "pytest_inferscope.py" in names


def sources() -> list[Path]:
    folder = REPOSITORY / "python" / "inferscope"
    return [
        path for path in folder.rglob("*.py*") if path.suffix in (".py", ".pyi") and "__pycache__" not in path.parts
    ]


def test_everything_public_is_documented_and_typed():
    for name in inferscope.__all__:
        if name != "__version__":
            assert getattr(inferscope, name).__doc__, f"inferscope.{name} has no documentation"
