"""`MemoryTracker`: samples from outside, phases and counters of the program, callbacks; it ends with the program and
never harms it."""

from __future__ import annotations

import json
import os
import signal

import pytest
from inferscope.memory import (
    DeviceMemoryCapabilities,
    DeviceMemoryCollector,
    DeviceMemorySample,
    MemoryTracker,
    MemoryWatchdog,
    Plugins,
    TrackingError,
    load_telemetry_events,
)
from memory_programs import MIB, environment, printed, run, wait_until

# Nothing is sampled by itself in the time of a test: each sample is asked for.
SELDOM = 3600.0


@pytest.fixture(autouse=True)
def command(monkeypatch):
    monkeypatch.setenv("INFERSCOPE_BIN", environment()["INFERSCOPE_BIN"])


@pytest.fixture
def quiet(tmp_path):
    tracker = MemoryTracker(SELDOM, output=tmp_path / "telemetry", plugins=Plugins())
    yield tracker
    tracker.stop_tracking()


class Counted(DeviceMemoryCollector):
    """A framework that holds what it is told to; None fails."""

    def __init__(self, used, total=100 * MIB):
        self.used, self.total = used, total

    def name(self):
        return "test.counted"

    def unavailable(self):
        return None

    def capabilities(self):
        return DeviceMemoryCapabilities("test", self.name(), "test")

    def sample(self):
        if self.used is None:
            raise OSError("no answer")
        return DeviceMemorySample(
            device_id=7, allocated_bytes=self.used, used_bytes=self.used, total_bytes=self.total, details={"retries": 3}
        )


def kinds(events):
    return [event.event_type for event in events]


def test_samples_and_phases_reach_the_files(quiet):
    with quiet, quiet.phase("load", metadata={"model": "gpt2"}), quiet.phase("weights") as weights:
        held = bytearray(64 * MIB)
        first = quiet.sample_now()
        assert weights.phase_path == "load/weights"
    del held
    assert first.process_bytes > 64 * MIB and first.device_id == -1 and first.pid == os.getpid()
    assert first.device_used_bytes <= first.device_total_bytes
    kept = load_telemetry_events(quiet.output)
    assert kinds(kept)[0] == "start" and kinds(kept)[-1] == "stop"
    phases = [(event.event_type, event.context) for event in kept if event.event_type.startswith("phase")]
    inner = [("phase_enter", "load/weights"), ("phase_exit", "load/weights")]
    assert phases == [("phase_enter", "load"), *inner, ("phase_exit", "load")]
    assert next(event for event in kept if event.context == "load").metadata["model"] == "gpt2"
    statistics = quiet.get_statistics()
    lost = ("events_lost", "events_not_streamed", "requests_refused", "not_sent", "unreadable", "callback_errors")
    assert {name: statistics[name] for name in lost} == dict.fromkeys(lost, 0)
    assert statistics["events_written"] == len(kept) - 1 and statistics["ended"] is None
    assert sorted(kinds(quiet.get_events())) == sorted(kinds(kept)), "callers see what the files hold"


def test_nothing_is_kept_without_an_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MemoryTracker(SELDOM, output=None, plugins=Plugins()) as tracker:
        tracker.sample_now()
    assert "sample" in kinds(tracker.get_events()) and os.listdir(tmp_path) == []


def test_counters_of_a_framework_are_kept_and_raise_alerts(tmp_path):
    collector, alerts = Counted(50 * MIB), []
    with MemoryTracker(SELDOM, output=tmp_path, collectors=[collector], plugins=Plugins()) as tracker:
        tracker.add_alert_callback(alerts.append)
        for used in (85, 90, 97, 10, 85):
            collector.used = used * MIB
            tracker.sample_now()
    assert kinds(alerts) == ["warning", "critical", "warning"]
    mine = [event for event in tracker.get_events("sample") if event.device_id == 7]
    assert mine[-1].allocator_allocated_bytes == 85 * MIB and mine[-1].metadata["retries"] == 3
    assert mine[-1].collector == "test.counted"


def test_thresholds_change_while_it_runs_and_contradictions_are_refused(tmp_path):
    collector = Counted(50 * MIB)
    tracker = MemoryTracker(SELDOM, output=None, collectors=[collector], plugins=Plugins())
    with tracker:
        with pytest.raises(ValueError, match="must be below the critical one"):
            tracker.set_threshold("warning", 0.97)
        with pytest.raises(ValueError, match="unknown threshold"):
            tracker.set_threshold("warming", 0.5)
        tracker.set_threshold("memory_warning_percent", 40)
        tracker.sample_now()
        tracker.sample_now()
    assert "warning" in kinds(tracker.get_alerts())
    for wrong in ({"warning": 0.9, "critical": 0.9}, {"warning": 0}, {"critical": 1.5}, {"warning": float("nan")}):
        with pytest.raises(ValueError, match="threshold"):
            MemoryTracker(**wrong)
    with pytest.raises(TypeError, match="all devices are tracked"):
        MemoryTracker("cuda:0")
    for wrong in ({"sampling_interval": 0.001}, {"hold": -1}, {"max_events": 0}):
        with pytest.raises(ValueError, match="must be"):
            MemoryTracker(**wrong)


def test_a_callback_that_raises_is_counted_and_the_others_are_called(quiet):
    def fails(event):
        raise SystemExit("gone")

    seen = []
    quiet.add_event_callback(fails)
    quiet.add_event_callback(seen.append)
    with quiet:
        quiet.sample_now()
        quiet.sample_now()
    assert kinds(seen).count("sample") >= 2
    statistics = quiet.get_statistics()
    assert statistics["callback_errors"] == len(seen) and "SystemExit: gone" in statistics["last_callback_error"]


def test_a_callback_can_stop_its_tracker_but_not_wait_for_it(quiet):
    said = []

    def stops(event):
        if event.event_type == "sample":
            try:
                quiet.sample_now()
            except TrackingError as error:
                said.append(str(error))
            quiet.stop_tracking()

    quiet.add_event_callback(stops)
    quiet.start_tracking()
    wait_until(lambda: not quiet.is_tracking)
    assert "a callback cannot wait" in said[0]


def test_starting_and_stopping_twice_does_nothing(quiet):
    quiet.stop_tracking()
    quiet.start_tracking()
    session = quiet._session
    quiet.start_tracking()
    assert quiet._session is session
    quiet.stop_tracking()
    quiet.stop_tracking()
    assert not quiet.is_tracking
    with pytest.raises(TrackingError, match="call start_tracking"):
        quiet.sample_now()
    assert quiet.record_event("cleanup") is False, "and nobody hears"
    quiet.start_tracking()
    assert quiet.sample_now().event_type == "sample", "it starts again"


@pytest.mark.parametrize("place", ["a file", "a full disk"])
def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path, place):
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "telemetry" if place == "a file" else "/dev/full/telemetry"
    with pytest.raises(TrackingError, match="choose another place"):
        MemoryTracker(output=folder).start_tracking()


def test_no_command_is_an_error_that_says_what_to_do(monkeypatch):
    from inferscope import _binary

    monkeypatch.setattr(_binary, "find", lambda: None)
    with pytest.raises(TrackingError, match="reinstall the package, or set INFERSCOPE_BIN"):
        MemoryTracker(output=None).start_tracking()


def test_a_million_alerts_take_bounded_memory():
    from inferscope.memory import TelemetryEvent
    from inferscope.memory._history import History

    history = History(max_events=100)
    alert = TelemetryEvent(1, "critical", "c", 100, 1, "h", 0)
    for _ in range(1_000_000):
        history.add(alert)
    assert len(history.events()) == 100 and len(history.alerts()) == 1000 and len(history.alerts(3)) == 3
    assert history.statistics()["alerts"] == 1_000_000


def test_a_burst_of_events_never_makes_the_program_wait(quiet):
    with quiet:
        child = quiet.get_events("start")[0].metadata["tracker_pid"]
        os.kill(child, signal.SIGSTOP)
        try:
            sent = [quiet.record_event("allocation", "x" * 400) for _ in range(4000)]
        finally:
            os.kill(child, signal.SIGCONT)
        assert sent[0] and not sent[-1], "the pipe is full, and what it does not take is counted"
    assert quiet.get_statistics()["not_sent"] == sent.count(False)
    assert kinds(quiet.get_events()).count("allocation") == sent.count(True)


def test_metadata_of_any_kind_is_kept_or_said_to_be_missing(quiet):
    class Broken:
        def __str__(self):
            raise RuntimeError("no")

    with quiet:
        quiet.record_event("cleanup", "set", {"a": {1, 2}})
        quiet.record_event("cleanup", "broken", {"a": Broken()})
        quiet.record_event("cleanup", "long", {"a": "x" * 100_000})
        quiet.record_event("cleanup", "é" * 5000, {"lone": "\ud800"})
        with pytest.raises(ValueError, match="unknown type of event"):
            quiet.record_event("party")
    found = {event.context[:6]: event.metadata for event in quiet.get_events("cleanup")}
    assert found["set"]["a"] == "{1, 2}" and found["broken"]["metadata_unreadable"]
    assert found["long"]["metadata_too_long"] and len(found) == 4


def test_a_collector_that_fails_is_asked_no_more():
    from inferscope.memory._framework_counters import FrameworkCounters

    told, collector = [], Counted(None)
    counters = FrameworkCounters([collector], 0)
    for _ in range(50):
        counters.read(told.append)
    assert counters.errors == 10 and "OSError: no answer" in counters.last_error
    assert [json.loads(line)["type"] for line in told] == ["collector_degraded"]


def test_the_watchdog_cleans_up_but_not_all_the_time(tmp_path):
    collector, cleaned = Counted(10 * MIB), []

    def fails():
        cleaned.append("fails")
        raise OSError("not today")

    tracker = MemoryTracker(SELDOM, output=None, collectors=[collector], plugins=Plugins())
    watchdog = MemoryWatchdog(
        tracker, policies={"fails": fails, "free": lambda: cleaned.append("free")}, aggressive={}, min_interval=3600
    )
    with tracker:
        for used in (85, 97, 10, 97):
            collector.used = used * MIB
            tracker.sample_now()
        tracker.sample_now()
    assert cleaned == ["fails", "free"]
    stats = watchdog.get_cleanup_stats()
    assert (stats["cleanups"], stats["suppressed"], stats["errors"]) == (1, 2, 1)
    told = tracker.get_events("cleanup")[0]
    assert told.context == "normal" and told.metadata["failed"] == ["fails: OSError: not today"]
    watchdog.force_cleanup(aggressive=True)
    assert watchdog.get_cleanup_stats()["cleanups"] == 2


def test_plugins_are_told_and_one_that_fails_is_counted():
    seen = []

    class Good:
        def on_memory_snapshot(self, event):
            seen.append(event)

        def collectors(self):
            return [Counted(5)]

    class Bad:
        def on_memory_snapshot(self, event):
            raise RuntimeError("broken plugin")

    tracker = MemoryTracker(SELDOM, output=None, collectors=[], plugins=Plugins([Good, Bad()]))
    with tracker:
        tracker.sample_now()
    assert {event.device_id for event in seen} == {-1, 7}
    assert tracker.get_statistics()["plugin_errors"] == len(seen)


def test_installed_plugins_are_found_by_their_entry_point(tmp_path):
    package = tmp_path / "packages"
    (package / "plugin-1.0.dist-info").mkdir(parents=True)
    (package / "plugin-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    entries = "[inferscope.memory]\nmine = memory_plugin:Mine\ngone = no_such_module:It\n"
    (package / "plugin-1.0.dist-info" / "entry_points.txt").write_text(entries)
    (package / "memory_plugin.py").write_text(
        "class Mine:\n    def on_memory_snapshot(self, event):\n        print(event.event_type)\n"
    )
    path = os.pathsep.join([str(package), environment()["PYTHONPATH"]])
    said = printed(
        """
        from inferscope.memory import MemoryTracker
        with MemoryTracker(3600, output=None) as tracker:
            tracker.sample_now()
        print(tracker.get_statistics()["plugin_errors"])
        """,
        tmp_path,
        PYTHONPATH=path,
    )
    *told, errors = said.split()
    assert set(told) == {"sample"} and errors == "1", "the plugin that cannot be loaded is counted"


def test_exports_hold_what_was_tracked(quiet, tmp_path):
    with quiet:
        quiet.sample_now()
    for form in ("csv", "json", "jsonl"):
        quiet.export_events(tmp_path / form, form)
    events = quiet.get_events()
    assert [each.to_dict() for each in load_telemetry_events(tmp_path / "jsonl")] == [each.to_dict() for each in events]
    assert len(json.loads((tmp_path / "json").read_text())) == len(events)
    assert len((tmp_path / "csv").read_text().splitlines()) == len(events) + 1
    with pytest.raises(ValueError, match="csv, json or jsonl"):
        quiet.export_events(tmp_path / "xml", "xml")
    timeline = quiet.get_memory_timeline(60)
    assert timeline["process"][-1] > 0 and len(timeline["timestamps"]) == len(timeline["allocated"])
    quiet.clear_events()
    assert quiet.get_events() == [] and quiet.get_statistics()["total_events"] == 0


def test_the_package_imports_no_framework_and_nothing_heavy(tmp_path):
    done = run(
        """
        import sys
        import inferscope.memory as memory
        memory.get_gpu_info()
        memory.available_collectors()
        heavy = {"torch", "tensorflow", "jax", "numpy", "matplotlib", "pandas", "psutil"}
        print(sorted(heavy & set(sys.modules)))
        """,
        tmp_path,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
