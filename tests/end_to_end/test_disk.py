"""Output that cannot be written: from the start, when the disk fills up, or because somebody removes the folder."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from recording import INFERSCOPE, PATIENCE_S, SCOPE, Trace, analyze, environment, inferscope, until

# File systems that are full, and how long a command then takes.
pytestmark = pytest.mark.serial


def test_an_unwritable_place_is_refused_before_the_command_starts(unprivileged, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    command = [*unprivileged, INFERSCOPE, "run", "--output", closed / "trace", "--", "sh", "-c", "echo started"]
    done = subprocess.run(command, capture_output=True, cwd="/")
    assert done.returncode == 1
    assert done.stdout == b"", "the command must not run when nothing can be recorded"
    assert str(closed).encode() in done.stderr
    assert b"ermission denied" in done.stderr


@pytest.mark.parametrize("place", ["/proc/trace", "/dev/null/trace"])
def test_a_place_where_nobody_can_write(place):
    done = inferscope("run", "--output", place, "--", "sh", "-c", "echo started")
    assert done.returncode == 1
    assert done.stdout == b""
    assert place.encode() in done.stderr


def test_a_folder_that_holds_something_else_is_not_touched(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    done = inferscope("run", "--output", tmp_path, "--", "true")
    assert done.returncode in (1, 2, 5)
    assert os.listdir(tmp_path) == ["mine.txt"]
    assert b"--output" in done.stderr or str(tmp_path).encode() in done.stderr


FILLS = """
    import sys
    from inferscope import scope
    for number in range(400_000):
        name = f"a name that takes room {number % 5000} " + "x" * 100
        with scope(name, tags={"number": number, "pad": str(number) * 20}): pass
    print("done", flush=True)
    sys.exit(6)
"""


def test_a_full_disk_stops_the_recording_but_not_the_command(own_mounts, script, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    kept = tmp_path / "kept"
    inner = " && ".join(
        [
            f"mount -t tmpfs -o size=6m tmpfs {shlex.quote(str(small))}",
            f"{{ {INFERSCOPE} run --output {small}/trace -- {script(FILLS)}; echo code $?; }}",
            # The file system vanishes with the command: take the trace along, and analyse it in place first.
            f"{{ {INFERSCOPE} analyze {small}/trace; echo analyze $?; }}",
            f"cp -r {small}/trace {kept}",
        ]
    )
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environment(), timeout=PATIENCE_S)
    out = done.stdout.decode()
    assert "done" in out
    assert "code 6" in out, done.stderr.decode()
    assert "analyze 0" in out, done.stderr.decode()
    told = done.stderr.decode() + out
    assert "full" in told or "No space left" in told
    trace = Trace(kept)
    assert trace.slices(SCOPE), "what was written before the disk was full is there"
    assert any("space" in note or "full" in note for note in trace.notes), trace.notes


FILLED_BY_ANOTHER = """
    import glob, sys, time
    from inferscope import scope
    with scope("before"): pass
    end = time.monotonic() + 60
    while time.monotonic() < end and not glob.glob("trace/slices.*.parquet"): time.sleep(0.01)
    with open("filler", "wb", buffering=0) as file:
        try:
            while True: file.write(bytes(4096))
        except OSError: print("full", flush=True)
        with scope("after"): pass
        sys.exit(6)
"""


def test_a_disk_that_is_full_to_the_last_page_is_told_of_in_the_trace(own_mounts, script, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    kept = tmp_path / "kept"
    inner = " && ".join(
        [
            f"mount -t tmpfs -o size=6m tmpfs {shlex.quote(str(small))}",
            f"cd {shlex.quote(str(small))}",
            f"{{ {INFERSCOPE} run --output trace -- {script(FILLED_BY_ANOTHER)}; echo code $?; }}",
            f"cp -r trace {kept}",
            "rm filler",
            f"{INFERSCOPE} analyze trace",
            f"cp -r trace {kept}-later",
        ]
    )
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environment(), timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines()[:2] == ["full", "code 6"], done.stderr.decode()
    trace = Trace(kept)
    assert any("space" in note for note in trace.notes), trace.notes
    assert trace.manifest["exit"] == {"code": 6}
    # With room again, the rest comes out of shared memory.
    assert Trace(Path(f"{kept}-later")).texts(SCOPE) == ["before", "after"]
    assert not list(Path(f"{kept}-later").glob("*.reserve"))


GOES_ON = """
    import os, sys, time
    from inferscope import scope
    print("ready", flush=True)
    while not os.path.exists(sys.argv[1]):
        with scope("round"): pass
        time.sleep(0.001)
    print("done", flush=True)
    sys.exit(6)
"""


def test_the_output_folder_is_removed_while_recording(script, start, tmp_path):
    recording = start(script(GOES_ON), tmp_path / "go")
    assert recording.line() == "ready"
    folder = recording.trace.folder
    until(lambda: list(folder.glob("slices.*.parquet")), "a closed file")
    shutil.rmtree(folder)
    (tmp_path / "go").touch()
    ours = recording.finish()
    assert ours.code == 6
    assert b"done" in ours.out
    assert "panicked" not in ours.told
    if folder.exists():
        assert ours.trace.notes
        analyze(folder)
    else:
        assert str(folder) in ours.told


def test_the_command_may_remove_everything_in_its_working_folder(script, tmp_path):
    work = tmp_path / "work-folder"
    work.mkdir()
    path = script("import shutil, sys; shutil.rmtree('inferscope-traces'); sys.exit(6)")
    done = subprocess.run(
        [INFERSCOPE, "run", path], cwd=work, capture_output=True, env=environment(), timeout=PATIENCE_S
    )
    assert done.returncode == 6
    assert b"panicked" not in done.stderr
