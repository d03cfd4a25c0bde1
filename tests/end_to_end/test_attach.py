"""`inferscope attach`: a process that was not started by us, with and without the right to look into it."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from recording import INFERSCOPE, PATIENCE_S, SCOPE, Trace, alive, environment, inferscope, until

BUSY = """
    import os, threading
    parent = os.getppid()
    def hot_loop():  # Until it is killed, or whoever wanted it is gone.
        while os.getppid() == parent: sum(range(100))
    threading.Thread(target=hot_loop, name="worker-of-mine", daemon=True).start()
    print(os.getpid(), flush=True)
    hot_loop()
"""


@pytest.fixture
def busy(script):
    process = subprocess.Popen([sys.executable, script(BUSY)], stdout=subprocess.PIPE)
    assert int(process.stdout.readline()) == process.pid
    yield process
    process.kill()
    process.communicate()


@pytest.mark.every_python
def test_stacks_threads_and_memory_of_a_running_process(busy, tmp_path):
    done = inferscope("attach", busy.pid, "--duration", 2, "--output", tmp_path / "trace")
    assert done.returncode == 0, done.stderr.decode()
    assert alive(busy.pid)
    trace = Trace(tmp_path / "trace")
    assert any(function.endswith("hot_loop") for function, _ in trace.hottest())
    assert "worker-of-mine" in {row["name"] for row in trace.table("threads")}
    counters = {trace.names()[row["counter"]] for row in trace.table("counters")}
    assert {"rss_bytes", "cpu_ns", "voluntary_switches"} <= counters
    assert trace.manifest["processes"][0]["pid"] == busy.pid
    # What it marks was not looked for: nobody is told that it marks nothing.
    assert trace.manifest["attached"] is True
    assert "records from outside only: use" in trace.report and "none in the program" not in trace.report
    assert "hot_loop" in trace.report


def test_ctrl_c_ends_the_recording_and_not_the_process(busy, tmp_path):
    folder = tmp_path / "trace"
    command = [INFERSCOPE, "attach", str(busy.pid), "--output", folder]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment())
    until(lambda: list(folder.glob("samples.*.parquet")), "a closed file")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 130), err.decode()
    assert alive(busy.pid)
    assert Trace(folder).table("samples")


def test_the_process_ends_while_it_is_recorded(busy, tmp_path):
    folder = tmp_path / "trace"
    process = subprocess.Popen([INFERSCOPE, "attach", str(busy.pid), "--output", folder], stderr=subprocess.PIPE)
    until(lambda: list(folder.glob("samples.*.parquet")), "a closed file")
    busy.kill()
    busy.wait()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err.decode()
    assert Trace(folder).manifest["state"] == "complete"


def test_no_such_process(tmp_path):
    done = inferscope("attach", 2**22 - 3, "--output", tmp_path / "trace")
    assert done.returncode == 1
    assert b"no process" in done.stderr.lower() or b"no such process" in done.stderr.lower()
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("pid", ["0", "-1", "nonsense", "99999999999999"])
def test_what_is_no_process_number(pid):
    done = inferscope("attach", "--", pid)
    assert done.returncode in (1, 2)
    assert b"panicked" not in done.stderr


def test_a_process_that_is_not_python_gives_what_there_is(tmp_path):
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        done = inferscope("attach", sleeper.pid, "--duration", 1, "--output", tmp_path / "trace")
    finally:
        sleeper.kill()
        sleeper.wait()
    assert done.returncode == 0, done.stderr.decode()
    trace = Trace(tmp_path / "trace")
    assert trace.table("counters")
    assert not trace.table("samples")
    assert any("ython" in note for note in trace.notes)


def test_no_permission_to_sample(busy, unprivileged):
    """Another user's process: the sentence says what forbids it, and nothing is harmed."""
    assert unprivileged, "only root can have a process that another user may not look into: run the suite as root"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        command = [*unprivileged, INFERSCOPE, "attach", str(busy.pid), "--duration", "1", "--output", f"{folder}/trace"]
        done = subprocess.run(command, capture_output=True, cwd="/", timeout=PATIENCE_S)
        told = done.stderr.decode()
        assert done.returncode == 1
        assert "no permission to record process" in told
        assert "uid 0" in told
        assert "--no-stacks" in told
        command.insert(-2, "--no-stacks")
        done = subprocess.run(command, capture_output=True, cwd="/", timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr.decode()
        assert Trace(Path(folder) / "trace").table("counters")
        assert alive(busy.pid)


UNDUMPABLE = """
    import ctypes, sys, time
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: as servers do that hold secrets.
    from inferscope import scope
    with scope("still recorded"): pass
    end = time.monotonic() + 0.5
    while time.monotonic() < end: pass
    sys.exit(6)
"""


@pytest.mark.every_python
def test_a_process_that_makes_itself_unreadable_runs_unharmed(script, record):
    ours = record(script(UNDUMPABLE))
    assert ours.code == 6
    assert ours.trace.texts(SCOPE) == ["still recorded"]


def test_two_recorders_on_one_process(busy, tmp_path):
    """The second one is told who holds the process, and the first one goes on."""
    first = [INFERSCOPE, "attach", str(busy.pid), "--output", tmp_path / "one"]
    process = subprocess.Popen(first, stderr=subprocess.PIPE, env=environment())
    until(lambda: list((tmp_path / "one").glob("samples.*.parquet")), "a closed file")
    second = inferscope("attach", busy.pid, "--duration", 1, "--output", tmp_path / "two")
    assert second.returncode == 1
    assert f"already being recorded by process {process.pid}" in second.stderr.decode()
    assert not (tmp_path / "two").exists()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert Trace(tmp_path / "one").table("samples")
    # A supervisor that was killed ends its recording: the next one may record.
    process = subprocess.Popen([*first[:-1], tmp_path / "three"], stderr=subprocess.PIPE, env=environment())
    until(lambda: list((tmp_path / "three").glob("samples.*.parquet")), "a closed file")
    recorder = Trace(tmp_path / "three").manifest["recorder_pid"]
    process.kill()
    process.communicate()
    until(lambda: not alive(recorder), "the recorder has completed the trace")
    assert Trace(tmp_path / "three").manifest["state"] == "complete"
    assert inferscope("attach", busy.pid, "--duration", 1, "--output", tmp_path / "four").returncode == 0
    assert alive(busy.pid)


def test_attach_to_a_process_that_is_recorded_already(script, start, tmp_path):
    recording = start(script(BUSY))
    pid = int(recording.line())
    done = inferscope("attach", pid, "--duration", 1, "--output", tmp_path / "second")
    assert done.returncode == 1
    assert f"already being recorded by process {recording.process.pid}" in done.stderr.decode()
    os.kill(pid, signal.SIGTERM)
    ours = recording.finish()
    assert ours.trace.manifest["exit"] == {"signal": 15}


def test_a_recorder_under_a_recorder(script, tmp_path):
    """`inferscope run -- inferscope run -- python`: the outer one has it all, the inner one says so and steps back."""
    path = script("from inferscope import scope\nwith scope('inner'): print('ran')\nraise SystemExit(6)")
    inner = [INFERSCOPE, "run", "--output", tmp_path / "inner", "--", path]
    done = inferscope("run", "--output", tmp_path / "outer", "--", *inner)
    assert (done.returncode, done.stdout) == (6, b"ran\n"), done.stderr.decode()
    assert b"already records this command" in done.stderr
    assert Trace(tmp_path / "outer").texts(SCOPE) == ["inner"]
    assert not (tmp_path / "inner").exists()
