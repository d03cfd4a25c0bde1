"""`inferscope.memory` beside the real PyTorch and JAX on the CPU: results are unchanged, wrapped models stay models,
real errors of memory are known, and nothing is started or imported for it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import environment  # noqa: E402


def printed(script: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_profiled_model_is_the_model(tmp_path):
    said = printed(
        """
        import torch
        from inferscope.memory import CPUMemoryProfiler, ProfiledLayer, ProfiledModule, profile_function
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
        x = torch.randn(4, 8)
        plain, profiler = model(x), CPUMemoryProfiler()
        around = ProfiledModule(model, "model", profiler=profiler)
        print(isinstance(around, torch.nn.Module), torch.equal(around(x), plain), around.module is model)
        print(sum(p.numel() for p in around.parameters()) == sum(p.numel() for p in model.parameters()))
        inside = torch.nn.Sequential(around, ProfiledModule(torch.nn.Identity(), profiler=profiler))
        print(torch.equal(inside(x), plain), torch.equal(ProfiledLayer(model, profiler=profiler)(x), plain))
        print(torch.equal(profile_function(model.forward)(x), plain))
        print([result.function_name for result in profiler.results])
        around(x).sum().backward()
        print(all(p.grad is not None for p in model.parameters()))
        """,
        tmp_path,
    )
    names = "['model', 'model', 'Identity', 'Sequential']"
    assert said == ["True True True", "True", "True True", "True", names, "True"]


def test_real_errors_of_memory_leave_a_bundle(tmp_path):
    said = printed(
        """
        import torch
        from inferscope.memory import MemoryTracker, classify_oom_exception
        tracker = MemoryTracker(3600, output="telemetry", enable_oom_flight_recorder=True)
        try:
            with tracker, tracker.phase("load"), tracker.capture_oom("load", {"batch": 8}):
                torch.empty(1 << 60, dtype=torch.uint8)
        except RuntimeError as error:
            found = classify_oom_exception(error)
            print(found.is_oom, found.kind)
        try:
            torch.zeros(2) + torch.zeros(3)
        except RuntimeError as error:
            print(classify_oom_exception(error).is_oom)
        print(tracker.get_events("error")[0].metadata["reason"])
        """,
        tmp_path,
    )
    assert said == ["True host", "False", "out_of_memory"]
    bundles = os.listdir(tmp_path / "oom_dumps")
    assert len(bundles) == 1, "one death, one bundle"


def test_frameworks_that_have_no_gpu_are_left_alone(tmp_path):
    said = printed(
        """
        import torch, jax
        from inferscope.memory import GPUMemoryProfiler, JAXDeviceCollector, MemoryTracker, available_collectors
        with MemoryTracker(3600, output=None) as tracker:
            tracker.sample_now()
        print(available_collectors(), torch.cuda.is_initialized(), bool(jax._src.xla_bridge._backends))
        print(tracker.get_statistics()["collector_errors"])
        try:
            GPUMemoryProfiler()
        except RuntimeError as error:
            print(error)
        jax.numpy.ones(3).block_until_ready()
        print(JAXDeviceCollector().unavailable())
        """,
        tmp_path,
    )
    assert said[:2] == ["[] False False", "0"]
    assert "PyTorch has not started CUDA" in said[2] and "CPUMemoryProfiler" in said[2]
    assert said[3] == "JAX counts no memory on cpu devices: use CPUMemoryProfiler for host memory"


def test_jax_tells_the_memory_of_its_buffers_where_its_devices_count_none(tmp_path):
    """What is said to be unknown here must be unknown: a JAX that begins to count on the CPU is to be read."""
    said = printed(
        """
        import jax
        from inferscope.memory import JAXDeviceCollector, CPUMemoryProfiler
        held = jax.numpy.ones((1024, 1024), dtype="float32").block_until_ready()
        print(jax.local_devices()[0].memory_stats(), len(jax.profiler.device_memory_profile()) > 100)
        print(JAXDeviceCollector().is_available(), JAXDeviceCollector().capabilities().sampling_source)
        with CPUMemoryProfiler() as profiler:
            total = profiler.profile_function(lambda: float((held @ held).sum()))
        print(total == 1024.0**3, profiler.last_result is not None)
        """,
        tmp_path,
    )
    assert said == ["None True", "False jax.Device.memory_stats", "True True"]
