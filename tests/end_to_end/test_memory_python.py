"""`inferscope.memory` as it is installed: on a disk that fills, where the user may not write, and in a program that is
recorded at the same time."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

from recording import PATIENCE_S, STEP, environment, inferscope

FILLS = """
    import json, sys
    from inferscope.memory import MemoryTracker
    tracker = MemoryTracker(3600, output=sys.argv[1])
    tracker.start_tracking()
    with open(sys.argv[1] + "/filler", "wb", buffering=0) as file:
        try:
            while True: file.write(b"x" * 65536)
        except OSError:
            pass
    for turn in range(200):
        for number in range(100):
            tracker.record_event("allocation", f"{turn}-{number}-" * 40)
        tracker.sample_now()
    tracker.stop_tracking()
    print(json.dumps(tracker.get_statistics()))
"""


def test_a_full_disk_loses_events_which_are_counted(own_mounts, script, tmp_path):
    small = shlex.quote(str(tmp_path))
    program = shlex.quote(str(script(FILLS, "../fills.py").resolve()))
    inner = f"mount -t tmpfs -o size=6m tmpfs {small} && {sys.executable} {program} {small}"
    done = subprocess.run(
        [*own_mounts, "sh", "-c", inner], capture_output=True, text=True, env=environment(), timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    statistics = json.loads(done.stdout)
    assert statistics["events_lost"] > 0 and "No space left" in statistics["why_lost"]
    assert statistics["events_written"] > 0 and statistics["ended"] is None
    assert statistics["events_written"] + statistics["events_lost"] == statistics["total_events"] - 1


def test_a_place_where_nobody_can_write_is_refused_with_what_to_do(script):
    program = script("""
        from inferscope.memory import MemoryTracker, TrackingError
        try:
            MemoryTracker(output="/proc/telemetry").start_tracking()
        except TrackingError as error:
            print(error)
    """)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env=environment(), timeout=PATIENCE_S
    )
    assert done.stdout.startswith("cannot write /proc/telemetry"), done.stderr
    assert "choose another place with output=" in done.stdout


def test_a_recorded_program_tracks_itself_too(record, script, tmp_path):
    program = script("""
        import sys
        from inferscope import step
        from inferscope.memory import MemoryTracker
        with MemoryTracker(3600, output=sys.argv[1]) as tracker:
            for number in step(range(20), name="request"):
                with tracker.phase("request"):
                    held = bytearray(1 << 20)
            tracker.sample_now()
        print(len(tracker.get_events("phase_exit")))
    """)
    recorded = record(sys.executable, program, tmp_path / "telemetry")
    assert (recorded.code, recorded.out) == (0, b"20\n")
    assert len(recorded.trace.slices(STEP)) == 20
    assert len(recorded.trace.manifest["processes"]) == 1, "the tracker is no process of the program"
    done = inferscope("query", "events", tmp_path / "telemetry", "--type", "phase_exit", "--format", "json")
    assert len(done.stdout.splitlines()) == 20
