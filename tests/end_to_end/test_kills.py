"""Workload, recorder, supervisor, or several of them are killed in the middle: what was recorded is in the trace, what
is missing is said, and the workload goes on when only ours died."""

import os
import random
import signal
import time
from glob import glob
from pathlib import Path

import pytest
from recording import CALL, PATIENCE_S, SCOPE, STEP, alive, analyze, until

# Kills at moments that a busy machine would move.
pytestmark = pytest.mark.serial

# Says what it has recorded, then waits to be killed: all that it said must be in the trace. Its lines are long, so that
# the pipe is full, and it waits, before it has written more than its ring holds without a recorder.
WORKLOAD = """
    import os, sys, time
    from inferscope import scope, step, mark_event
    print(os.getpid(), flush=True)
    with scope("open for ever", tags={"why": "killed"}):
        number = 0
        while True:
            with step("round"):
                for _ in range(20):
                    with scope("inner"): number += 1
            print(f"{number:50}", flush=True)
            time.sleep(0.002)
"""


class Workload:
    """A recording of it, and the last number that it said was recorded."""

    def __init__(self, recording):
        self.recording = recording
        self.pid = int(recording.line())
        self.said = 0

    def read(self, lines):
        for _ in range(lines):
            self.said = int(self.recording.line())

    def read_the_rest(self):
        for line in self.recording.process.stdout.read().decode().splitlines(keepends=True):
            if line.endswith("\n"):
                self.said = int(line)


@pytest.fixture
def workload(script, start):
    return Workload(start(script(WORKLOAD)))


def complete_up_to(trace, said):
    """Everything that was said to be recorded is there, and the scope that never closed is there as open."""
    inner = [row for row in trace.slices(SCOPE) if row["text"] == "inner"]
    assert len(inner) >= said > 0
    assert len(trace.slices(STEP)) >= said // 20
    (outer,) = [row for row in trace.slices(SCOPE) if row["text"] == "open for ever"]
    assert outer["dur_ns"] is None
    assert trace.lost() == 0


@pytest.mark.parametrize("lines", [1, 40, 400])
def test_the_workload_is_killed(workload, lines):
    workload.read(lines)
    os.kill(workload.pid, signal.SIGKILL)
    workload.read_the_rest()
    assert workload.recording.process.wait(PATIENCE_S) == -signal.SIGKILL
    trace = workload.recording.trace
    assert trace.manifest["exit"] == {"signal": 9}
    complete_up_to(trace, workload.said)
    assert "open for ever" in analyze(trace)


@pytest.mark.parametrize("lines", [1, 40, 400])
def test_the_recorder_is_killed_and_started_again(workload, lines):
    recording = workload.recording
    for _ in range(3):
        workload.read(lines)
        killed = recording.recorder
        os.kill(killed, signal.SIGKILL)
        until(lambda killed=killed: recording.recorder != killed, "another recorder writes the trace")
    workload.read(lines)
    os.kill(workload.pid, signal.SIGKILL)
    workload.read_the_rest()
    assert recording.process.wait(PATIENCE_S) == -signal.SIGKILL
    trace = recording.trace
    assert (trace.manifest["state"], trace.manifest["exit"]) == ("complete", {"signal": 9})
    complete_up_to(trace, workload.said)
    note = "the recorder was killed 3 times and restarted: no records were overwritten"
    assert any(line.startswith(note) for line in trace.notes), trace.notes
    assert "killed 3 times" in trace.report


def test_the_supervisor_is_killed_and_the_recorder_completes_the_trace(workload):
    workload.read(40)
    recording = workload.recording
    recorder, segments = recording.recorder, recording.trace.manifest["segments"]
    recording.process.kill()
    recording.process.wait(PATIENCE_S)
    workload.read(40)
    os.kill(workload.pid, signal.SIGKILL)
    # Whoever reads the command's output does not wait for the recorder.
    workload.read_the_rest()
    until(lambda: not alive(recorder), "the recorder has ended")
    assert (recording.trace.manifest["state"], recording.trace.manifest["exit"]) == ("complete", None)
    assert not os.path.exists(segments)
    complete_up_to(recording.trace, workload.said)
    assert "the supervisor was killed" in analyze(recording.trace)


@pytest.mark.parametrize("lines", [1, 40, 400])
def test_all_of_ours_are_killed_and_the_workload_goes_on(workload, lines):
    workload.read(lines)
    workload.recording.kill_all_of_ours()
    before = workload.said
    workload.read(lines)  # It goes on.
    assert workload.said > before
    assert alive(workload.pid)
    os.kill(workload.pid, signal.SIGKILL)
    until(lambda: not alive(workload.pid), "the workload is gone")
    summary = analyze(workload.recording.trace)
    assert "recorder" in summary
    assert workload.recording.trace.manifest["state"] == "recovered"
    complete_up_to(workload.recording.trace, before)


@pytest.mark.parametrize("seed", range(6))
def test_all_are_killed_at_a_random_moment(workload, seed):
    workload.read(random.Random(seed).choice([1, 3, 10, 30, 100, 300]))
    victims = [workload.pid, workload.recording.process.pid, workload.recording.recorder]
    random.Random(seed).shuffle(victims)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    workload.recording.process.wait(PATIENCE_S)
    until(lambda: not alive(workload.pid), "the workload is gone")
    # A recorder that was started again in between has completed the trace.
    until(lambda: not workload.recording.trace.is_recorded(), "the recorder is gone")
    workload.read_the_rest()
    analyze(workload.recording.trace)
    complete_up_to(workload.recording.trace, workload.said)


def test_a_recovered_trace_is_opened_again_and_leaves_nothing_in_shared_memory(workload):
    workload.read(20)
    recorder = workload.recording.recorder
    os.killpg(workload.recording.process.pid, signal.SIGKILL)
    workload.recording.process.wait(PATIENCE_S)
    until(lambda: not alive(recorder), "the recorder is gone")
    until(lambda: not alive(workload.pid), "the workload is gone")
    segments = workload.recording.trace.manifest["segments"]
    assert os.listdir(segments)
    first = analyze(workload.recording.trace)
    assert not os.path.exists(segments)
    assert analyze(workload.recording.trace).splitlines()[2:] == first.splitlines()[2:]


def test_a_trace_is_readable_while_it_is_recorded(workload):
    workload.read(20)
    until(lambda: list(workload.recording.trace.folder.glob("slices.*.parquet")), "a closed file")
    summary = analyze(workload.recording.trace)
    assert "recording" in summary or "still" in summary
    assert alive(workload.pid)
    workload.read(20)
    # Looking did not take anything away from the living recorder.
    os.kill(workload.pid, signal.SIGKILL)
    workload.read_the_rest()
    workload.recording.process.wait(PATIENCE_S)
    complete_up_to(workload.recording.trace, workload.said)


def test_calls_that_were_open_at_the_kill_are_shown_as_open(script, start):
    recording = start(
        script("""
            import os, time
            def outermost(): middle()
            def middle(): innermost()
            def innermost():
                print(os.getpid(), flush=True)
                while True: time.sleep(1)
            outermost()
        """),
        options=("--calls",),
    )
    pid = int(recording.line())
    os.kill(pid, signal.SIGKILL)
    recording.finish()
    still_open = {row["text"].rpartition(".")[2] for row in recording.trace.slices(CALL) if row["dur_ns"] is None}
    assert {"outermost", "middle", "innermost"} <= still_open


def stopped(pid):
    tasks = [Path(task).read_text().rpartition(")")[2].split()[0] for task in glob(f"/proc/{pid}/task/*/stat")]
    return all(state == "T" for state in tasks)


def test_stacks_that_were_in_no_file_yet_survive_the_recorder(script, start):
    # Nothing else is sampled, and stacks often: what else the recorder learns in a second is a few hundred bytes.
    options = ("--memory-hz", "0", "--device-hz", "0", "--rate", "500")
    recording = start(
        script("""
            import os
            def spin():
                while True: pass
            print(os.getpid(), flush=True)
            spin()
        """),
        options=options,
    )
    pid, trace = int(recording.line()), recording.trace
    recorder = recording.recorder
    journal = Path(trace.manifest["segments"], "journal")

    def between_files():
        """Some samples are in files and some are not, and the recorder is stopped there."""
        os.kill(recorder, signal.SIGSTOP)
        until(lambda: stopped(recorder), "the recorder stands still")
        # While files are being closed, the journal still holds what is in them.
        closed = max((file.stat().st_mtime_ns for file in trace.folder.glob("*.parquet*")), default=0)
        if trace.files("samples") and journal.stat().st_size > 4000 and journal.stat().st_mtime_ns > closed:
            return True
        os.kill(recorder, signal.SIGCONT)
        return False

    until(between_files, "samples in files and in the journal")
    in_files = trace.count("samples")
    recording.kill_all_of_ours()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "the workload is gone")
    assert "its last write was at" in analyze(trace)
    assert trace.count("samples") > in_files
    assert "spin" in {function for function, _ in trace.hottest()}, "every stack and name is there"
    assert len({row["time_ns"] for row in trace.table("samples")}) == trace.count("samples"), "each once"


def test_the_recorder_is_killed_during_its_last_moments(script, start):
    """At any moment of the finish: the trace is whole, either as recovered or as complete."""
    path = script("""
        from inferscope import scope
        for _ in range(2000):
            with scope("x"): pass
        print("end", flush=True)
    """)
    for delay in (0.0, 0.01, 0.03, 0.1, 0.2):
        recording = start(path, folder=path.parent / f"trace-{delay}")
        assert recording.line() == "end"
        time.sleep(delay)  # Not to wait for something: to hit different moments.
        recording.kill_all_of_ours()
        analyze(recording.trace)
        assert recording.trace.texts(SCOPE) == ["x"] * 2000
        assert recording.trace.manifest["state"] in ("recovered", "complete")
