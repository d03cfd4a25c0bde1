"""The GPU beside others: PyTorch's own profiler in the same program, several processes under one command, and a budget
that lets only some of the steps be recorded."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from fake_gpu import KERNEL, OnGpu
from recording import PATIENCE_S, SCOPE, Recorded, Trace, inferscope

WORK = "repeat 20\nkernel k us=5\nend\nsync device\n"


def with_torch(gpu):
    """What our package sees of PyTorch: the function that prepares its profiler, which then asks for CUPTI."""
    package = gpu.folder / "torch" / "autograd"
    package.mkdir(parents=True)
    (gpu.folder / "torch" / "__init__.py").write_text("from . import autograd\n__version__ = '2.0'\n")
    (package / "__init__.py").write_text("from . import profiler\n")
    (package / "profiler.py").write_text(
        "import ctypes\n"
        "def _prepare_profiler(config, activities):\n"
        "    ctypes.CDLL('libcuda.so.1').fake_do(b'subscribe')\n"
    )


def test_torch_profiler_started_inside_our_run_gets_cupti_and_the_report_says_so(gpu):
    with_torch(gpu)
    program = gpu.python(f"""
        import enum
        class Activity(enum.Enum):
            CPU = 0
            CUDA = 1
        import torch
        from inferscope import scope
        assert driver.cuInit(0) == 0
        do({WORK!r})
        torch.autograd.profiler._prepare_profiler(None, {{Activity.CPU, Activity.CUDA}})
        with scope("after"):
            do("kernel theirs us=5\\nsync device")
    """)
    seen = gpu.play("", command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().strip() == "subscribe 0", "nobody holds CUPTI when PyTorch asks"
    assert seen.kernels() == {"k": 20}, "what came before is there, what came after is theirs"
    assert seen.trace.texts(SCOPE) == ["after"], "the rest is recorded"
    assert "torch.profiler" in seen.notes() and "torch.profiler" in seen.trace.report


def test_torch_profiler_for_the_cpu_alone_changes_nothing(gpu):
    with_torch(gpu)
    program = gpu.python(f"""
        import enum
        class Activity(enum.Enum):
            CPU = 0
        import torch
        assert driver.cuInit(0) == 0
        do({WORK!r})
        torch.autograd.profiler._prepare_profiler(None, {{Activity.CPU}})
        do({WORK!r})
    """)
    seen = gpu.play("", command=(program,))
    assert seen.recorded.out.decode().strip() == "subscribe 39", "we hold it"
    assert seen.kernels() == {"k": 40}


def test_several_processes_are_one_trace(gpu):
    """As torchrun starts its ranks: each has a process of its own in the trace."""
    seen = gpu.play(WORK, command=("sh", "-c", f"{gpu.app} & {gpu.app} & {gpu.app} & wait"))
    assert seen.recorded.code == 0, seen.recorded.told
    per_process = {row["process"] for row in seen.work(KERNEL)}
    assert len(per_process) == 3
    assert seen.kernels() == {"k": 60}
    assert seen.lost() == 0


def test_an_overhead_budget_records_windows_and_says_so(gpu):
    rounds = 15_000
    seen: OnGpu = gpu.play(
        f"repeat {rounds}\nkernel k us=10 call=10\nsync stream\nend", options=("--overhead-budget", "2%")
    )
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.trace.manifest["settings"]["overhead_budget"] == "2%"
    recorded = seen.kernels()["k"]
    assert 0 < recorded < rounds, "some windows were recorded, some were not"
    assert "windows" in seen.notes() and "windows" in seen.trace.report
    assert [device["name"] for device in seen.trace.manifest["processes"][0]["devices"]] == ["Fake GPU 0"]
    calls = {row["id"] for row in seen.trace.slices(7)}
    linked = sum(row["correlation"] in calls for row in seen.work(KERNEL))
    assert linked > 0.9 * recorded, "in a window both sides of a launch are there"


# Launches as fast as they go for so many seconds, and says how many kernels and waits that were.
FAST = """
    import sys, time
    assert driver.cuInit(0) == 0
    end, rounds = time.monotonic() + int(sys.argv[1]), 0
    while time.monotonic() < end:
        do("repeat 40\\nrepeat 60\\nkernel k us=1 call=1\\nend\\nsync stream\\nend")
        rounds += 1
    print(rounds * 40 * 61)
"""


def accepted(notes):
    """How much recording may cost, in percent. What it was measured to cost stands beside it, and may be the same."""
    return re.findall(r"(?:at most|limit|below) ([0-9.]+) %", notes)


def test_a_program_that_launches_fast_is_recorded_in_windows_only_if_that_is_dear(gpu):
    """Three seconds until it is noticed, and then some in which it is found out what recording costs."""
    seen: OnGpu = gpu.play("", command=(gpu.python(FAST), 9))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.trace.manifest["settings"]["overhead_budget"] == "auto"
    assert "GPU work was recorded for" in seen.notes(), "it was noticed, and the report says what was done"
    assert accepted(seen.notes()) == ["10.0"], "for launches"
    assert 0 < seen.trace.count("gpu") < int(seen.recorded.out), "some time went into finding out"
    # Where the collector's sentence tells a cost, the report has it, too.
    analysis = json.loads(inferscope("analyze", seen.trace.folder, "--format", "json").stdout)
    measured = analysis["gpu_work"]["overhead"]["by"] == "windows"
    assert measured == ("not known" not in seen.notes()), seen.notes()


def test_graphs_may_be_slowed_down_by_less_than_launches(gpu):
    program = gpu.python("""
        import sys, time
        assert driver.cuInit(0) == 0
        end = time.monotonic() + int(sys.argv[1])
        while time.monotonic() < end:
            do("repeat 40\\ngraph id=7\\n" + "kernel k us=1 node=3\\n" * 60 + "end\\nsync stream\\nend")
    """)
    seen: OnGpu = gpu.play("", command=(program, 9))
    assert seen.recorded.code == 0, seen.recorded.told
    assert "GPU work was recorded for" in seen.notes()
    assert accepted(seen.notes()) == ["1.0"], "for nodes of graphs"


def test_every_kernel_is_recorded_whatever_it_costs_if_that_is_asked_for(gpu):
    seen: OnGpu = gpu.play("", command=(gpu.python(FAST), 6), options=("--overhead-budget", "none"))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.trace.count("gpu") == int(seen.recorded.out), "kernels and waits"
    assert "GPU work was recorded for" not in seen.notes()


@pytest.mark.serial
def test_the_diagnosis_with_a_budget_is_the_one_without(gpu):
    """Half of each step the host prepares something; most steps lie outside the windows."""
    program = gpu.python("""
        import sys, time
        from inferscope import step
        assert driver.cuInit(0) == 0
        end = time.monotonic() + int(sys.argv[1])
        for _ in step(iter(lambda: time.monotonic() < end, False), name="request"):
            until = time.monotonic() + 0.004
            while time.monotonic() < until:
                pass
            do("repeat 8\\nkernel k us=500\\nend\\nsync stream")
    """)
    said = {}
    # A tenth of the time is recorded at first.
    for budget, seconds in (("none", 3), ("2%", 12)):
        seen = gpu.play("", command=(program, seconds), options=("--overhead-budget", budget))
        assert seen.recorded.code == 0, seen.recorded.told
        done = inferscope("analyze", seen.trace.folder, "--format", "json")
        said[budget] = json.loads(done.stdout)
        shutil.rmtree(seen.trace.folder)
    whole, part = said["none"], said["2%"]
    assert "are excluded" in part["steps"]["why"], part["steps"]["why"]
    assert part["bottleneck"]["type"] == whole["bottleneck"]["type"]
    # A busy machine takes the core from one of the two, which is said, and is no difference between them.
    codes = {name: [found["code"] for found in one["findings"]] for name, one in said.items()}
    first = {name: next(code for code in found if code != "launch-thread-descheduled") for name, found in codes.items()}
    assert first["none"] == first["2%"], codes
    busy = {name: one["gpu"][0]["busy_percent_of_step"] for name, one in said.items()}
    assert abs(busy["none"] - busy["2%"]) < 15, busy


def test_a_window_is_long_enough_for_a_step(gpu):
    """Steps of three seconds: what recording costs is found out in parts of them, and then one is recorded whole."""
    program = gpu.python("""
        import time
        from inferscope import step
        assert driver.cuInit(0) == 0
        for _ in range(6):
            with step("generate"):
                until = time.monotonic() + 3
                while time.monotonic() < until:
                    do("repeat 20\\nkernel k us=100 call=10\\nend\\nsync stream")
    """)
    seen: OnGpu = gpu.play("", command=(program,), options=("--overhead-budget", "50%"))
    assert seen.recorded.code == 0, seen.recorded.told
    steps = json.loads(inferscope("analyze", seen.trace.folder, "--format", "json").stdout)["steps"]
    assert "are excluded" in steps["why"], steps
    assert 0 < steps["count"] < 6, steps


def test_a_recording_after_one_in_windows_has_its_calls(gpu):
    """The first ends while its budget lets nothing be recorded, which the next one in the process is not to know."""
    program = gpu.python("""
        import inferscope, sys
        assert driver.cuInit(0) == 0
        inferscope.start(output=sys.argv[1], overhead_budget="2%")
        do("repeat 10\\nkernel first us=5\\nsync device\\nend")
        inferscope.stop()
        inferscope.start(output=sys.argv[2], overhead_budget="none")
        do("repeat 10\\nkernel second us=5\\nsync device\\nend")
        inferscope.stop()
    """)
    env = gpu.environment("", gpu.libraries.cupti("13.0"))
    folders = [gpu.folder / "first", gpu.folder / "second"]
    done = subprocess.run([sys.executable, program, *folders], env=env, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    seen = OnGpu(Recorded(done.returncode, done.stdout, done.stderr, Trace(folders[1])))
    assert seen.kernels() == {"second": 10}
    assert seen.calls() == {"cudaLaunchKernel": 10, "cudaDeviceSynchronize": 10}
