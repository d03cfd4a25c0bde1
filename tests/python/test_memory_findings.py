"""What `inferscope.memory` says: which errors are of memory, bundles, leaks, gaps and drawings."""

from __future__ import annotations

import json
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest
from inferscope import memory
from inferscope.memory import (
    CPUMemoryProfiler,
    MemoryAnalyzer,
    MemoryProfilingError,
    MemoryVisualizer,
    OOMFlightRecorder,
    OOMFlightRecorderConfig,
    Plugins,
    TelemetryEvent,
    classify_oom_exception,
)
from memory_programs import MIB, environment

GIB = 1 << 30


def namespace(**contents):
    return types.SimpleNamespace(**contents)


def error_type(name, module, base=RuntimeError):
    return type(name, (base,), {"__module__": module})


OOMS = {
    "torch": (error_type("OutOfMemoryError", "torch")("CUDA out of memory."), "torch.OutOfMemoryError", "device"),
    "old torch": (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "torch: CUDA out of memory", "device"),
    "torch CPU": (RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0"), "torch: [enforce fail", "host"),
    "driver": (
        error_type("AcceleratorError", "torch")("CUDA error: out of memory"),
        "torch.AcceleratorError",
        "device",
    ),
    "tensorflow": (
        error_type("ResourceExhaustedError", "tensorflow.python.framework.errors_impl")("OOM when allocating tensor"),
        "tensorflow.ResourceExhaustedError",
        "device",
    ),
    "jax": (
        error_type("XlaRuntimeError", "jaxlib.xla_extension")("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes"),
        "jax.RESOURCE_EXHAUSTED",
        "device",
    ),
    "host": (MemoryError(), "MemoryError", "host"),
}


@pytest.mark.parametrize("which", OOMS)
def test_errors_of_memory_are_known(which):
    error, reason, kind = OOMS[which]
    found = classify_oom_exception(error)
    assert found.is_oom and found.reason.startswith(reason) and found.kind == kind and found.exception is error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("the server said: CUDA out of memory"),
        error_type("OutOfMemoryError", "my_package")("we ran out of memory"),
        error_type("ResourceExhaustedError", "tensorflow.python")("failed to allocate a queue slot"),
    ],
    ids=["another type", "quoted", "another package", "a queue"],
)
def test_an_error_that_only_mentions_memory_is_called_that(error):
    found = classify_oom_exception(error)
    assert (found.is_oom, found.kind) == (False, "mention") and found.reason.startswith("mentions")


def test_what_has_nothing_to_do_with_memory_is_none():
    for error in (ValueError("the room is full"), error_type("ResourceExhausted", "google.api_core")("quota")):
        assert classify_oom_exception(error) == memory.OOMExceptionClassification(False, None)


def raised(function):
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def test_causes_are_followed_and_mere_company_is_not():
    def cause():
        try:
            raise MemoryError
        except MemoryError as error:
            raise RuntimeError("request failed") from error

    def company():
        try:
            raise MemoryError
        except MemoryError:
            {}["missing"]

    found = classify_oom_exception(raised(cause))
    assert found.is_oom and isinstance(found.exception, MemoryError)
    found = classify_oom_exception(raised(company))
    assert (found.is_oom, found.kind) == (False, "during")
    ring = ValueError("a ring")
    ring.__cause__ = KeyError("of causes")
    ring.__cause__.__cause__ = ring
    assert not classify_oom_exception(ring).is_oom
    group = ValueError("a group")
    group.exceptions = (KeyError("x"), MemoryError())
    assert classify_oom_exception(group).is_oom


def test_a_bundle_holds_the_last_events_and_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "hidden")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    recorder = OOMFlightRecorder(OOMFlightRecorderConfig(True, tmp_path / "dumps", buffer_size=10, max_dumps=2))
    for number in range(1000):
        recorder.record_event({"event_type": "sample", "timestamp_ns": number})
    assert recorder.handle(ValueError("no memory error")) is None
    places = [Path(recorder.handle(MemoryError("too much"), "load", {"batch": 8})) for _ in range(4)]
    assert [place.exists() for place in places] == [False, False, True, True]
    files = {file.name: json.loads(file.read_text()) for file in places[-1].iterdir()}
    assert sorted(files["manifest.json"]["files"]) == sorted(files) and files["manifest.json"]["backend"] == "host"
    assert [event["timestamp_ns"] for event in files["events.json"]] == list(range(990, 1000))
    metadata = files["metadata.json"]
    assert metadata["exception"] == {"type": "MemoryError", "module": "builtins", "message": "too much"}
    assert (metadata["context"], metadata["custom"]) == ("load", {"batch": 8})
    assert files["environment.json"]["variables"]["CUDA_VISIBLE_DEVICES"] == "0"
    assert not any("hidden" in file.read_text() for file in places[-1].iterdir())


def test_a_bundle_that_cannot_be_written_is_no_second_error(tmp_path):
    (tmp_path / "file").write_text("")
    recorder = OOMFlightRecorder(OOMFlightRecorderConfig(True, tmp_path / "file"))
    assert recorder.handle(MemoryError()) is None and "could not be written" in recorder.last_error
    assert OOMFlightRecorder(OOMFlightRecorderConfig()).handle(MemoryError()) is None, "not enabled"
    with pytest.raises(ValueError, match="max_dumps must be at least 1"):
        OOMFlightRecorderConfig(max_dumps=0)


def test_the_flight_recorder_lets_the_exception_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERSCOPE_BIN", environment()["INFERSCOPE_BIN"])
    with pytest.raises(MemoryError, match="mine"), memory.flight_recorder(tmp_path / "dumps", context="serve"):
        raise MemoryError("mine")
    (bundle,) = (tmp_path / "dumps").iterdir()
    events = json.loads((bundle / "events.json").read_text())
    assert events[0]["event_type"] == "start"
    monkeypatch.setattr("inferscope._binary.find", lambda: None)
    with pytest.raises(MemoryError), memory.flight_recorder(tmp_path / "again") as recorder:
        raise MemoryError
    assert "INFERSCOPE_BIN" in recorder.last_error and len(list((tmp_path / "again").iterdir())) == 1


def samples(held, device=-1, **more):
    def one(number, value):
        counters = {"metadata": {"process_bytes": value}} if device < 0 else {"allocator_allocated_bytes": value}
        return TelemetryEvent(number * 10**8, "sample", "c", 100, 1, "h", device, **counters, **more)

    return [one(number, value) for number, value in enumerate(held)]


def test_a_leak_is_told_from_loading_and_from_a_saw(monkeypatch):
    told = []
    plugins = Plugins([namespace(on_leak_detected=told.append), namespace(on_leak_detected=lambda finding: 1 / 0)])
    analyzer = MemoryAnalyzer(plugins=plugins)
    leak = [GIB + number * MIB for number in range(200)]
    loading = [min(number, 100) * 50 * MIB for number in range(1000)]
    saw = [GIB + (number % 10) * 50 * MIB for number in range(200)]
    step = [GIB] * 100 + [2 * GIB] * 100
    assert [analyzer.detect_leaks(samples(held)) for held in (loading, saw, step, leak[:10])] == [[], [], [], []]
    (found,) = analyzer.detect_leaks(samples(leak, device=0))
    assert found.device_id == 0 and abs(found.bytes_per_second / (10 * MIB) - 1) < 0.2
    assert told == [found] and plugins.errors == 1
    report = analyzer.generate_optimization_report(events=samples(leak))
    assert len(report["leaks"]) == 1 and report["gaps"] == [] and "patterns" not in report
    json.dumps(report)


def gap_events(gaps, reserved=10 * GIB, allocated=9 * GIB):
    for number, gap in enumerate(gaps):
        at = number * 10**8
        outside = {"device_used_bytes": 70 * GIB, "device_total_bytes": 80 * GIB}
        held = {"process_bytes": reserved + gap}
        yield TelemetryEvent(at, "sample", "inferscope.device", 100, 1, "h", 0, **outside, metadata=held)
        inside = {"allocator_reserved_bytes": reserved, "allocator_allocated_bytes": allocated}
        yield TelemetryEvent(at + 10**6, "sample", "inferscope.torch.cuda", 100, 1, "h", 0, **inside)


def test_gaps_are_classified_by_how_they_behave():
    analyze = MemoryAnalyzer().analyze_memory_gaps
    assert analyze(list(gap_events([GIB] * 50))) == [] and analyze([]) == []
    (drift,) = analyze(list(gap_events([GIB + number * GIB // 5 for number in range(50)])))
    assert drift.classification == "persistent_drift" and drift.evidence["device_id"] == 0 and drift.remediation
    (spike,) = analyze(list(gap_events([GIB] * 25 + [15 * GIB] + [GIB] * 25)))
    assert spike.classification == "transient_spike" and spike.evidence_timestamp_ns == 25 * 10**8 + 10**6
    (unused,) = analyze(list(gap_events([GIB] * 50, allocated=4 * GIB)))
    assert unused.classification == "fragmentation_like" and "6.00 GB of 10.00 GB" in unused.description


def test_a_function_that_keeps_memory_is_named():
    from inferscope.memory._measure import MemorySnapshot, ProfileResult

    def result(name, kept):
        before, after = (MemorySnapshot(0.0, name, size, None, None, 0) for size in (GIB, GIB + kept))
        return ProfileResult(name, 0.1, before, after)

    results = [result("appends", 10 * MIB) for _ in range(10)] + [result("fine", 0) for _ in range(10)]
    (found,) = MemoryAnalyzer().analyze_memory_patterns(results)
    assert found.affected_functions == ["appends"] and found.metrics["kept_bytes"] == 90 * MIB


def test_drawings_are_well_formed_whatever_the_names(tmp_path):
    profiler = CPUMemoryProfiler()
    for number in range(60):
        with profiler.profile_context(f"<&\0{number}\ud83d"):
            pass
    events = samples([GIB + number for number in range(5000)])
    phase = TelemetryEvent(10**10, "phase_enter", "c", 100, 1, "h", -1, context="<load>")
    plugins = Plugins(
        [namespace(visualizations=lambda: {"mine": lambda events: "<svg/>", "bad": lambda events: 1 / 0})]
    )
    visualizer = MemoryVisualizer(profiler, plugins=plugins)
    svg = visualizer.plot_memory_timeline([*events, phase], save_path=tmp_path / "timeline.svg")
    assert "&lt;load&gt;" in svg and len(svg) < 60_000, "no more points than pixels"
    for drawing in (
        svg,
        visualizer.plot_memory_timeline(),
        visualizer.plot_function_comparison(metric="peak_memory"),
        visualizer.plot_cross_rank_timeline(samples([1, 2], rank=1, world_size=2)),
    ):
        ElementTree.fromstring(drawing.encode("utf-8", "replace"))
    page = visualizer.create_dashboard(events)
    assert (
        page.count("<svg") >= 5
        and "bad could not be drawn: ZeroDivisionError" in page
        and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    )
    for empty in (MemoryVisualizer().plot_memory_timeline, MemoryVisualizer().create_dashboard):
        with pytest.raises(MemoryProfilingError, match="nothing to draw"):
            empty(save_path=tmp_path / "empty.svg")
    assert not (tmp_path / "empty.svg").exists()
    with pytest.raises(ValueError, match="memory_diff or peak_memory"):
        visualizer.plot_function_comparison(metric="speed")
