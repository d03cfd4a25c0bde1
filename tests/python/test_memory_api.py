"""`inferscope.memory` without a tracker: events, sizes, collectors beside stand-ins for frameworks, and profilers."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import types

import pytest
from inferscope import memory
from inferscope.memory import (
    CPUMemoryProfiler,
    DeviceMemorySample,
    DeviceUnavailable,
    GPUMemoryProfiler,
    TelemetryEvent,
    TelemetryEventV2,
    TFMemoryProfiler,
)
from memory_programs import MIB, environment

GIB = 1 << 30
V2 = {
    "schema_version": 2, "timestamp_ns": 1, "event_type": "sample", "collector": "c", "sampling_interval_ms": 100,
    "pid": 1, "host": "h", "device_id": 0, "allocator_allocated_bytes": 1, "allocator_reserved_bytes": 2,
    "allocator_active_bytes": None, "allocator_inactive_bytes": None, "allocator_change_bytes": 0,
    "device_used_bytes": 3, "device_free_bytes": None, "device_total_bytes": 4, "context": None, "metadata": {},
}  # fmt: skip


@pytest.fixture
def stand_in(monkeypatch):
    """Puts a module where an import would have put it."""

    def put(name, **contents):
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    for name in ("torch", "tensorflow", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return put


def namespace(**contents):
    return types.SimpleNamespace(**contents)


STATS = {
    "allocated_bytes.all.current": 3 * GIB, "allocated_bytes.all.peak": 5 * GIB, "reserved_bytes.all.current": 6 * GIB,
    "active_bytes.all.current": 3 * GIB, "inactive_split_bytes.all.current": GIB, "num_ooms": 1, "num_alloc_retries": 2,
}  # fmt: skip


def torch_with(stand_in, started=True, hip=None, stats=STATS):
    cuda = namespace(
        is_initialized=lambda: started,
        device_count=lambda: 2,
        current_device=lambda: 1,
        memory_stats=lambda index: stats,
        get_device_properties=lambda index: namespace(total_memory=80 * GIB),
        mem_get_info=lambda index: (60 * GIB, 80 * GIB),
    )
    mps = namespace(is_available=lambda: False)
    return stand_in("torch", cuda=cuda, version=namespace(hip=hip), backends=namespace(mps=mps))


def test_sizes_are_read_as_people_write_them():
    said = [memory.format_bytes(size) for size in (0, 1023, 1024, 1_610_612_736, -2048, 1024**2 - 1)]
    assert said == ["0 B", "1023 B", "1.00 KB", "1.50 GB", "-2.00 KB", "1.00 MB"]
    assert memory.format_bytes(1536, precision=0) == "2 KB" and memory.format_bytes(1024**7).endswith(" PB")
    assert memory.convert_bytes(1, "GB", "MB") == 1024 and memory.convert_bytes(512, "mb", "gb") == 0.5
    with pytest.raises(ValueError, match="unknown unit 'GiB'"):
        memory.convert_bytes(1, "GiB", "MB")


def test_events_come_back_and_wrong_ones_are_named():
    event = TelemetryEvent.from_dict(V2)
    assert isinstance(event, TelemetryEventV2) and event.to_dict() == V2 and event.share_used == 0.75
    v4 = V2 | {"schema_version": 4, "session_id": "s", "allocator_allocated_bytes": None}
    assert TelemetryEvent.from_dict(v4).to_dict() == v4
    assert not isinstance(TelemetryEvent.from_dict(v4), TelemetryEventV2)
    wrong = {
        "allocator_allocated_bytes must be known": V2 | {"allocator_allocated_bytes": None},
        "device_used_bytes exceeds": V2 | {"device_used_bytes": 5},
        "unknown field 'extra'": V2 | {"extra": 1},
        "host is missing": {name: value for name, value in V2.items() if name != "host"},
        "session_id is missing": V2 | {"schema_version": 3},
        "pid must be a whole number": V2 | {"pid": True},
        "metadata must be an object": V2 | {"metadata": []},
        "event_type must be one of": V2 | {"event_type": "party"},
        "rank must be less than world_size": V2 | {"rank": 2, "world_size": 2},
        "schema_version must be 2, 3 or 4": V2 | {"schema_version": 9},
    }
    for message, record in wrong.items():
        with pytest.raises(ValueError, match=message):
            memory.validate_telemetry_record(record)


def test_files_of_any_version_are_loaded_by_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERSCOPE_BIN", environment()["INFERSCOPE_BIN"])
    (tmp_path / "old.jsonl").write_text('{"timestamp": 5.0, "type": "sample", "memory_mb": 2}\n' + json.dumps(V2))
    old, new = memory.load_telemetry_events(tmp_path / "old.jsonl")
    assert old.allocator_allocated_bytes == 2 * MIB and new.timestamp_ns == 1
    with pytest.raises(memory.MemoryProfilingError, match="No such file"):
        memory.load_telemetry_events(tmp_path / "missing")


def test_without_a_framework_there_is_an_error_that_says_what_to_do(stand_in):
    with pytest.raises(DeviceUnavailable, match="import torch first, or use CPUMemoryProfiler"):
        GPUMemoryProfiler()
    with pytest.raises(DeviceUnavailable, match="import tensorflow first"):
        TFMemoryProfiler()
    torch_with(stand_in, started=False)
    with pytest.raises(DeviceUnavailable, match="create a tensor on the GPU first"):
        GPUMemoryProfiler("cuda:0")
    with pytest.raises(ValueError, match="use CPUMemoryProfiler"):
        GPUMemoryProfiler("cpu")
    for wrong in ("cuda:x", "cuda:-1", "tape:0", -1):
        with pytest.raises(ValueError, match="device"):
            GPUMemoryProfiler(wrong)
    assert memory.available_collectors() == [] and memory.detect_torch_runtime_backend() == "cpu"


def test_counters_of_pytorch_are_read_as_they_are(stand_in):
    torch_with(stand_in)
    sample = memory.CUDADeviceCollector().sample()
    assert (sample.device_id, sample.allocated_bytes, sample.reserved_bytes) == (1, 3 * GIB, 6 * GIB)
    assert (sample.peak_bytes, sample.used_bytes, sample.total_bytes) == (5 * GIB, None, 80 * GIB)
    assert sample.details == {"num_alloc_retries": 2, "num_ooms": 1}
    assert memory.CUDADeviceCollector(0, device_totals=True).sample().used_bytes == 20 * GIB
    assert [each.name() for each in memory.available_collectors()] == ["inferscope.torch.cuda"]
    with pytest.raises(DeviceUnavailable, match="there is no GPU 2: this process sees 2"):
        GPUMemoryProfiler("cuda:2")
    capabilities = memory.CUDADeviceCollector().capabilities()
    assert capabilities.supports_allocator_reserved and not capabilities.supports_device_used and capabilities.limits


def test_rocm_and_mps_are_told_apart_from_cuda(stand_in):
    torch = torch_with(stand_in, hip="6.0")
    assert memory.build_device_memory_collector("cuda:0").name() == "inferscope.torch.rocm"
    assert memory.detect_torch_runtime_backend() == "rocm"
    torch.version.hip, torch.cuda.is_initialized = None, lambda: False
    torch.backends.mps.is_available = lambda: True
    torch.mps = namespace(current_allocated_memory=lambda: 5, driver_allocated_memory=lambda: 9)
    sample = memory.build_device_memory_collector().sample()
    assert (sample.allocated_bytes, sample.reserved_bytes, sample.active_bytes) == (5, 9, None)
    assert memory.detect_torch_runtime_backend() == "mps"


def test_tensorflow_and_jax_are_read_only_once_they_have_started(stand_in):
    info = namespace(get_memory_info=lambda device: {"current": 7, "peak": 9})
    config = namespace(experimental=info, list_logical_devices=lambda kind: ["GPU:0"])
    stand_in("tensorflow", config=config)
    assert "run an operation first" in memory.TensorFlowDeviceCollector().unavailable()
    stand_in("tensorflow.python.eager.context", _context=namespace(_initialized=True))
    sample = TFMemoryProfiler("/GPU:0").take_snapshot()
    assert (sample.allocated_memory, sample.peak_memory, sample.reserved_memory) == (7, 9, None)
    assert "no GPU:3" in memory.TensorFlowDeviceCollector("GPU:3").unavailable()
    devices = [namespace(platform="gpu", memory_stats=lambda: {"bytes_in_use": 3, "bytes_limit": 10})]
    stand_in("jax", local_devices=lambda: devices)
    assert "run a computation first" in memory.JAXDeviceCollector().unavailable()
    stand_in("jax._src.xla_bridge", _backends={"gpu": 1})
    sample = memory.JAXDeviceCollector().sample()
    assert (sample.allocated_bytes, sample.total_bytes, sample.peak_bytes) == (3, 10, None)
    devices[0].memory_stats = lambda: None
    assert "counts no memory" in memory.JAXDeviceCollector().unavailable()


def test_results_of_profiled_functions_are_unchanged():
    profiler, answer = CPUMemoryProfiler(), object()
    assert profiler.profile_function(lambda: answer) is answer
    result = profiler.last_result
    assert result.memory_before.allocated_memory > 0 and not result.failed and result.execution_time >= 0

    @profiler.decorate
    def fails(x):
        """Its own words."""
        raise KeyError(x)

    with pytest.raises(KeyError, match="'here'"):
        fails("here")
    assert profiler.last_result.failed and fails.__doc__ == "Its own words."
    with profiler.profile_context("grow") as grow:
        held = bytearray(64 * MIB)
    assert grow.result.memory_diff() > 48 * MIB and grow.result.peak_memory_usage() > 64 * MIB
    del held
    assert profiler.get_summary()["functions"]["grow"]["call_count"] == 1
    json.dumps([each.to_dict() for each in profiler.results])
    profiler.clear_results()
    assert profiler.results == [] and profiler.last_result is None


def test_a_peak_is_exact_only_where_it_rose(stand_in):
    stats = dict(STATS)
    torch_with(stand_in, stats=stats)
    profiler = GPUMemoryProfiler()
    profiler.profile_function(lambda: stats.update({"allocated_bytes.all.current": 4 * GIB}))
    assert profiler.last_result.memory_diff() == GIB
    assert (profiler.last_result.peak_is_exact, profiler.last_result.peak_memory_usage()) == (False, 4 * GIB)
    profiler.profile_function(lambda: stats.update({"allocated_bytes.all.peak": 7 * GIB}))
    assert (profiler.last_result.peak_is_exact, profiler.last_result.peak_memory_usage()) == (True, 7 * GIB)


def test_the_decorator_keeps_the_kind_of_a_function():
    profiler = CPUMemoryProfiler()

    @memory.profile_function(profiler=profiler)
    async def waits():
        return 3

    @memory.profile_function(profiler=profiler, name="items")
    def items():
        got = yield 1
        return got

    @memory.profile_function(profiler=profiler)
    async def streams():
        try:
            yield 1
            yield 2
        finally:
            order.append("closed")

    async def consume():
        async for item in streams():
            order.append(item)

    order = []
    assert asyncio.run(waits()) == 3
    generator = items()
    assert next(generator) == 1
    with pytest.raises(StopIteration) as end:
        generator.send("back")
    assert end.value.value == "back"
    asyncio.run(consume())
    assert order == [1, 2, "closed"]
    names = [result.function_name.rpartition(".")[2] for result in profiler.results]
    assert names == ["waits", "items", "streams"]
    with pytest.raises(TypeError, match="use profile_context"):
        memory.profile_function(int)


def test_without_a_gpu_in_use_the_decorator_measures_host_memory(stand_in):
    memory.clear_results()

    @memory.profile_function
    def work():
        return 5

    assert work() == 5
    assert memory.get_global_profiler().last_result.memory_after.device_id == -1
    torch_with(stand_in)
    with memory.profile_context("on the GPU") as part:
        pass
    assert part.result.memory_after.allocated_memory == 3 * GIB
    chosen = CPUMemoryProfiler()
    memory.set_global_profiler(chosen)
    try:
        assert work() == 5 and len(chosen.results) == 1
    finally:
        memory.set_global_profiler(None)


def test_profilers_are_used_by_many_threads():
    profiler = CPUMemoryProfiler(max_results=50)

    @profiler.decorate
    def work():
        return threading.get_ident()

    def several():
        for _ in range(100):
            assert work() == threading.get_ident()

    threads = [threading.Thread(target=several) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (entry,) = profiler.get_summary()["functions"].values()
    assert entry["call_count"] == 800 and len(profiler.results) == 50


def test_a_profiled_layer_is_the_layer_for_everybody_else():
    class Layer:
        units = 4

        def __call__(self, x):
            return x * self.units

    layer, profiler = Layer(), CPUMemoryProfiler()
    around = memory.ProfiledLayer(layer, profiler=profiler)
    around.units = 5
    assert (around(2), around.units, layer.units, profiler.last_result.function_name) == (10, 5, 5, "Layer")
    with pytest.raises(TypeError, match="must be callable"):
        memory.ProfiledLayer(3)
    with pytest.raises(AttributeError):
        around.nothing  # noqa: B018


def test_a_profiled_module_needs_pytorch(stand_in):
    with pytest.raises(DeviceUnavailable, match="import torch first, or use ProfiledLayer"):
        memory.ProfiledModule(lambda: 0)


def test_gpu_info_says_what_is_missing(stand_in, monkeypatch):
    monkeypatch.setenv("INFERSCOPE_BIN", environment()["INFERSCOPE_BIN"])
    info = memory.get_gpu_info()
    assert isinstance(info["gpus"], list) and "import torch first" in info["allocator_error"]
    assert info["gpus"] or "no GPU found" in info["error"]
    torch_with(stand_in)
    info = memory.get_gpu_info()
    assert (info["backend"], info["device_id"], info["memory"]["peak"]) == ("cuda", 1, 5 * GIB)


def test_a_sample_passes_on_only_what_is_known():
    assert DeviceMemorySample(0, allocated_bytes=5, total_bytes=None).counters() == {"allocated": 5}
