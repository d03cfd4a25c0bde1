"""How a `MemoryTracker` ends: with the program, however that ends; by itself; and in a forked child."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from inferscope.memory import MemoryTracker, Plugins, load_telemetry_events
from memory_programs import environment, is_alive, printed, wait_until


@pytest.fixture(autouse=True)
def command(monkeypatch):
    monkeypatch.setenv("INFERSCOPE_BIN", environment()["INFERSCOPE_BIN"])


@pytest.fixture
def quiet(tmp_path):
    # Nothing is sampled by itself in the time of a test.
    tracker = MemoryTracker(3600.0, output=tmp_path / "telemetry", plugins=Plugins())
    yield tracker
    tracker.stop_tracking()


def kinds(events):
    return [event.event_type for event in events]


def test_a_forked_child_is_not_tracked_and_does_not_hinder(tmp_path):
    said = printed(
        """
        import os
        from inferscope.memory import MemoryTracker
        tracker = MemoryTracker(3600, output="telemetry")
        tracker.start_tracking()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            told = [tracker.is_tracking, tracker.record_event("cleanup"), len(tracker.get_events()) > 0]
            tracker.stop_tracking()
            tracker.output = None
            tracker.start_tracking()
            told.append(tracker.sample_now().pid == os.getpid())
            os.write(write, repr(told).encode())
            tracker.stop_tracking()
            os._exit(0)
        print(os.read(read, 100).decode(), os.waitpid(pid, 0)[1])
        tracker.sample_now()
        try:
            os.wait()
        except ChildProcessError:
            print("no other child")
        tracker.stop_tracking()
        print(tracker.get_statistics()["ended"])
        """,
        tmp_path,
        # From Python 3.12 on a fork beside any thread is warned of.
        PYTHONWARNINGS="ignore::DeprecationWarning",
    )
    assert said.splitlines() == ["[False, False, True, True] 0", "no other child", "None"]


ENDS = {
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "_exit": "os._exit(0)",
    "return": "pass",
    # A child that lives on has the parent's end of the pipe: the tracker ends by the parent's end.
    "kill, with a child": "os.fork() or signal.pause(); os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_tracker_ends_with_the_program_however_that_ends(tmp_path, how):
    script = textwrap.dedent(f"""
        import os, signal
        from inferscope.memory import MemoryTracker
        tracker = MemoryTracker(0.05, output="telemetry")
        tracker.start_tracking()
        tracker.enter_phase("serve")
        tracker.sample_now()
        with open("pids", "w") as file:
            print(tracker.get_events("start")[0].metadata["tracker_pid"], os.getpid(), file=file)
        {ENDS[how]}
    """)
    (tmp_path / "program.py").write_text(script)
    with subprocess.Popen(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment(), start_new_session=True
    ) as started:
        started.wait()
        child = int((tmp_path / "pids").read_text().split()[0])
        wait_until(lambda: not is_alive(child))
        if "child" in how:
            os.killpg(started.pid, signal.SIGKILL)
    found = kinds(load_telemetry_events(tmp_path / "telemetry"))
    assert found[0] == "start" and "phase_enter" in found and found[-1] == "stop"


def test_a_tracker_that_is_killed_is_said_and_the_program_goes_on(quiet):
    quiet.start_tracking()
    os.kill(quiet.get_events("start")[0].metadata["tracker_pid"], signal.SIGKILL)
    wait_until(lambda: not quiet.is_tracking)
    assert quiet.get_statistics()["ended"] is not None
    with quiet.phase("goes on"):
        pass
    quiet.stop_tracking()


def test_it_starts_without_a_shell(quiet, monkeypatch):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != "/bin/sh" and access(path, mode))
    with quiet:
        assert quiet.sample_now().pid == os.getpid()
    assert kinds(load_telemetry_events(quiet.output))[-1] == "stop"


def test_starting_and_stopping_leaves_nothing_behind():
    def open_files():
        return len(os.listdir("/proc/self/fd"))

    def several():
        tracker = MemoryTracker(3600.0, output=None, plugins=Plugins())
        for _ in range(3):
            tracker.start_tracking()
            tracker.sample_now(60)
            tracker.stop_tracking()
        children.append(tracker.get_events("start")[-1].metadata["tracker_pid"])

    before, children = (open_files(), threading.active_count()), []
    threads = [threading.Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (open_files(), threading.active_count()) == before and len(children) == 4
    wait_until(lambda: not any(is_alive(child) for child in children))


def test_a_callback_that_never_returns_does_not_keep_the_program(quiet, monkeypatch):
    monkeypatch.setattr("inferscope.memory._session._STOP_S", 0.01)
    goes_on = threading.Event()
    quiet.add_event_callback(lambda event: goes_on.wait())
    quiet.start_tracking()
    stuck = quiet._session
    quiet.record_event("cleanup", "while it is stuck")
    quiet.stop_tracking()
    assert not quiet.is_tracking
    goes_on.set()
    wait_until(lambda: quiet.get_statistics()["not_delivered"] > 0 and not stuck._thread.is_alive())
    assert "while it is stuck" in [event.context for event in load_telemetry_events(quiet.output)]
    quiet.start_tracking()
    assert quiet.sample_now().event_type == "sample", "and it can start again"
