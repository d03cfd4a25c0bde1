"""The wheel that is shipped: one for every Python, small in the workload, with nothing missing. `make test-wheel`
builds it and names it in TEST_WHEEL."""

import os
import re
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WHEEL = Path(os.environ["TEST_WHEEL"])


def test_what_is_mapped_into_the_workload_is_small():
    with zipfile.ZipFile(WHEEL) as archive:
        libraries = {info.filename: info.file_size for info in archive.infolist() if info.filename.endswith(".so")}
    assert "inferscope/_native.abi3.so" in libraries and len(libraries) >= 2, libraries
    assert all(size <= 1_500_000 for size in libraries.values()), libraries


def test_the_wheel_serves_every_python_and_is_complete():
    assert re.fullmatch(r"inferscope-[\d.]+-cp310-abi3-(manylinux_\d+_\d+|linux)_x86_64\.whl", WHEEL.name), WHEEL.name
    with zipfile.ZipFile(WHEEL) as archive:
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
