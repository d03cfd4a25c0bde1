"""/dev/shm too small for a segment (64 MB is usual in containers), or full: it is recorded all the same, elsewhere
or with smaller rings."""

import os
import shlex
import subprocess
import sys

import pytest
from recording import INFERSCOPE, PATIENCE_S, SCOPE, Trace, environment

# Fills the memory that every recording shares.
pytestmark = pytest.mark.serial

SCRIPT = """
    from inferscope import scope
    for number in range(20_000):
        with scope("round", tags={"number": number}): pass
    print("done")
"""


@pytest.mark.parametrize("size", ["4k", "200k", "4m", "64m"])
def test_a_small_shared_memory(own_mounts, script, tmp_path, size):
    folder = tmp_path / "trace"
    command = " ".join(shlex.quote(str(word)) for word in [INFERSCOPE, "run", "--output", folder, "--", script(SCRIPT)])
    inner = f"mount -t tmpfs -o size={size} tmpfs /dev/shm && {command}"
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environment(), timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr.decode()
    trace = Trace(folder)
    assert len(trace.texts(SCOPE)) + trace.lost() == 20_000
    assert trace.texts(SCOPE), "a small /dev/shm is no reason to record nothing"


@pytest.mark.parametrize(
    ("options", "elsewhere"), [([], True), (["--gpu-detail", "off"], False), (["--trace-size-mb", "20"], False)]
)
def test_where_cuda_may_be_recorded_its_segment_needs_room_too(own_mounts, script, tmp_path, options, elsewhere):
    """A process has one segment for Python and another, of up to 64 MB, for CUDA."""
    folder = tmp_path / "trace"
    words = [INFERSCOPE, "run", *options, "--output", folder, "--", script(SCRIPT)]
    command = " ".join(shlex.quote(str(word)) for word in words)
    # That there is a driver is what the kernel says; only this command sees ours.
    driver = "mount -t tmpfs tmpfs /proc/driver && mkdir /proc/driver/nvidia && touch /proc/driver/nvidia/version"
    inner = f"mount -t tmpfs -o size=60m tmpfs /dev/shm && {driver} && {command}"
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environment(), timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr.decode()
    notes = [note for note in Trace(folder).notes if "/dev/shm" in note]
    assert bool(notes) == elsewhere, notes
    assert all("one process may need 80.0 MiB" in note for note in notes)


def test_a_program_that_records_itself_in_a_small_shared_memory(own_mounts, script, tmp_path):
    """As under `inferscope run`: the segments go to disk, and the trace says so."""
    folder = tmp_path / "trace"
    command = " ".join(shlex.quote(str(word)) for word in [sys.executable, script(SCRIPT)])
    inner = f"mount -t tmpfs -o size=4k tmpfs /dev/shm && {command}"
    environ = environment(INFERSCOPE_ENABLE="1", INFERSCOPE_OUTPUT=str(folder))
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environ, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")
    trace = Trace(folder)
    assert len(trace.texts(SCOPE)) + trace.lost() == 20_000
    assert [note for note in trace.notes if "/dev/shm" in note]
    assert not (folder / "segments").exists()


def test_shared_memory_that_fills_up_while_recording(own_mounts, script, tmp_path):
    """Somebody else takes the rest of it after the start. A sparse segment would die of SIGBUS here."""
    folder = tmp_path / "trace"
    path = script("""
        import sys, threading
        from inferscope import scope
        with scope("before"): pass
        with open("/dev/shm/somebody-elses", "wb", buffering=0) as file:
            try:
                while True: file.write(bytes(65536))
            except OSError: print("full")
        def work():
            for number in range(1000):
                with scope(f"after {number}" + "x" * 200): pass
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        sys.stdout.flush()
        sys.exit(6)
    """)
    command = " ".join(shlex.quote(str(word)) for word in [INFERSCOPE, "run", "--output", folder, "--", path])
    inner = f"mount -t tmpfs -o size=150m tmpfs /dev/shm && {command}"
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environment(), timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (6, b"full\n"), done.stderr.decode()
    trace = Trace(folder)
    assert "before" in trace.texts(SCOPE)


def test_nothing_is_left_in_shared_memory(script, record):
    ours = record(script(SCRIPT))
    assert ours.code == 0
    segments = ours.trace.manifest["segments"]
    assert segments is None or not os.path.exists(segments)
