"""What the end-to-end tests share: a folder for scripts and traces, and recordings that never outlive their test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from fake_gpu import FakeGpu, Libraries
from recording import INFERSCOPE, Recorded, Recording, Trace, environment, inferscope

# Started in the background or by nohup, this process ignores some signals, and so would every process that the tests
# start. It goes on ignoring them by handlers that do nothing: those are not inherited.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    assert INFERSCOPE.is_file(), f"no inferscope beside {sys.executable}: install the wheel first (`make test` does)"
    assert INFERSCOPE.read_bytes()[:4] == b"\x7fELF", (
        "the command is the native binary, not a script that starts Python"
    )


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Writes a script and gives its path."""

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Where a recording of `record` or `start` goes."""
    return tmp_path / "trace"


@pytest.fixture
def record(trace: Path) -> Callable[..., Recorded]:
    """Records a command to its end. A `.py` file alone runs in the tested Python."""

    def run(*command: object, options: tuple[object, ...] = (), **subprocess_options: Any) -> Recorded:
        done = inferscope("run", "--output", trace, *options, "--", *command, **subprocess_options)
        return Recorded(done.returncode, done.stdout, done.stderr, Trace(trace))

    return run


@pytest.fixture
def start(trace: Path) -> Iterator[Callable[..., Recording]]:
    """Starts a recording in the background; whatever is left of it ends with the test."""
    started: list[Recording] = []

    def run(*command: object, options: tuple[object, ...] = (), folder: Path | None = None, **popen: Any) -> Recording:
        popen.setdefault("env", environment())
        recording = Recording(folder or trace, command, *options, start_new_session=True, **popen)
        started.append(recording)
        return recording

    yield run
    for recording in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(recording.process.pid, signal.SIGKILL)
        recording.process.communicate()


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    """The stand-ins for CUDA that were built so far."""
    return Libraries(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def gpu(libraries: Libraries, record: Callable[..., Recorded], tmp_path: Path) -> FakeGpu:
    """A GPU without hardware."""
    return FakeGpu(libraries, record, tmp_path)


@pytest.fixture
def own_mounts() -> list[str]:
    """A prefix under which a command may mount file systems that only it sees: as root, or in a user namespace."""
    prefix = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    assert tried.returncode == 0, f"this machine lets no test mount a file system of its own: {tried.stderr}"
    return prefix


@pytest.fixture
def unprivileged() -> list[str]:
    """A prefix under which a command has no special rights: none for an ordinary user, another user for root."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    tried = subprocess.run([*prefix, str(INFERSCOPE), "--version"], capture_output=True, text=True)
    assert tried.returncode == 0, (
        f"an ordinary user cannot start {INFERSCOPE}, so nothing can be tested: {tried.stderr}"
    )
    return prefix
