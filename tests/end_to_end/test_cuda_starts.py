"""`inferscope.start()` in a program that has CUDA's library in it: CUDA is never started for the program, and once the
program has started it, in whatever thread and whenever that is, the GPU is recorded."""

import subprocess
import sys

import pytest
from fake_gpu import OnGpu
from recording import PATIENCE_S, Recorded, Trace

# In Python: whether CUDA was started here, and what the stand-ins wrote down so far.
QUESTIONS = """
    import inferscope, os, sys, threading, time
    def is_started(): return driver.cuCtxGetCurrent(ctypes.byref(ctypes.c_void_p())) == 0
    def until_logged(words):
        end = time.monotonic() + 60
        while words not in open(os.environ["FAKE_CUPTI_LOG"]).read():
            assert time.monotonic() < end, words
            time.sleep(0.005)
    FIVE = "repeat 5\\nkernel {} us=5\\nend\\nsync device"
"""


def alone(gpu, program, script="", traces=1, **extra):
    """Runs a program that records itself into the folders of its arguments."""
    folders = [gpu.folder / f"trace-{at}" for at in range(traces)]
    path = gpu.python(QUESTIONS)
    with path.open("a") as file:
        file.write(program.replace("\n    ", "\n"))
    env = gpu.environment(script, gpu.libraries.cupti("13.0"), **extra)
    gpu.log.touch()
    done = subprocess.run([sys.executable, path, *folders], env=env, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    log = gpu.log.read_text().splitlines()
    return [OnGpu(Recorded(0, done.stdout, done.stderr, Trace(folder)), log) for folder in folders]


def test_a_program_that_starts_cuda_after_start(gpu):
    (seen,) = alone(
        gpu,
        """
    inferscope.start(output=sys.argv[1])
    assert not is_started(), "start() has started CUDA"
    assert driver.cuInit(0) == 0
    do(FIVE.format("first"))
    inferscope.stop()
    """,
    )
    assert seen.kernels() == {"first": 5}
    assert seen.calls() == {"cudaLaunchKernel": 5, "cudaDeviceSynchronize": 1}
    assert seen.collector()["state"] == "on"


def test_forked_children_can_still_use_cuda_and_are_recorded(gpu):
    (seen,) = alone(
        gpu,
        """
    inferscope.start(output=sys.argv[1])
    children = []
    for rank in range(2):
        if (child := os.fork()) == 0:
            code = driver.cuInit(0)
            do(FIVE.format(f"rank{rank}"))
            sys.exit(code)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert driver.cuInit(0) == 0
    do(FIVE.format("parent"))
    inferscope.stop()
    """,
    )
    assert seen.kernels() == {"rank0": 5, "rank1": 5, "parent": 5}


def test_a_start_while_another_thread_starts_cuda(gpu):
    """That thread's driver had looked which library to load before start() said it."""
    (seen,) = alone(
        gpu,
        """
    starting = threading.Thread(target=driver.cuInit, args=(0,))
    starting.start()
    until_logged("cuInit began")
    inferscope.start(output=sys.argv[1])
    assert not is_started()
    starting.join()
    until_logged("cuptiActivityEnable")
    do(FIVE.format("soon"))
    inferscope.stop()
    """,
        script="slow-init us=700000",
    )
    assert not [line for line in seen.log if "InitializeInjection" in line]
    assert seen.kernels() == {"soon": 5}
    assert seen.collector()["state"] == "on"


def test_cuda_started_by_several_threads_at_once(gpu):
    """Each call of cuInit returns when the recording is on, and there is one."""
    (seen,) = alone(
        gpu,
        """
    inferscope.start(output=sys.argv[1])
    def work(name):
        assert driver.cuInit(0) == 0
        do(FIVE.format(name))
    threads = [threading.Thread(target=work, args=(f"t{at}",)) for at in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    inferscope.stop()
    """,
        script="slow-init us=100000",
    )
    assert seen.kernels() == {f"t{at}": 5 for at in range(4)}
    assert seen.called("cuptiSubscribe") == 1


def test_a_recording_that_is_over_before_cuda_starts(gpu):
    seen, after = alone(
        gpu,
        """
    inferscope.start(output=sys.argv[1])
    inferscope.stop()
    assert driver.cuInit(0) == 0
    do(FIVE.format("between"))
    inferscope.start(output=sys.argv[2])
    do(FIVE.format("after"))
    inferscope.stop()
    """,
        traces=2,
    )
    assert seen.kernels() == {} and after.kernels() == {"after": 5}
    # CUPTI tells nothing of a device that is in use by then; the driver does.
    (device,) = after.trace.manifest["processes"][0]["devices"]
    assert (device["name"], device["compute_capability"], device["multiprocessors"]) == ("Fake GPU 0", "9.0", 132)
    assert (device["memory_bytes"], device["bandwidth"]) == (80 << 30, 3_352_320_000_000)
    assert device["uuid"] == "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0"


def test_another_library_has_the_drivers_door(gpu):
    """Said where CUDA is yet to start; where it runs, nothing is in the way."""
    seen, after = alone(
        gpu,
        """
    inferscope.start(output=sys.argv[1])
    assert driver.cuInit(0) == 0
    do(FIVE.format("unseen"))
    inferscope.stop()
    inferscope.start(output=sys.argv[2])
    do(FIVE.format("seen"))
    inferscope.stop()
    """,
        traces=2,
        CUDA_INJECTION64_PATH="/nowhere/libother.so",
    )
    assert seen.kernels() == {} and after.kernels() == {"seen": 5}
    (gpu_line,) = [
        line for process in seen.trace.manifest["processes"] for line in process["collectors"]
        if line["name"] == "gpu" and line["state"] == "failed"
    ]  # fmt: skip
    for place in (gpu_line["reason"], seen.notes(), seen.trace.report, seen.recorded.err.decode()):
        assert "/nowhere/libother.so" in place and "CUDA_INJECTION64_PATH" in place, place


@pytest.mark.parametrize("early", [True, False])
def test_start_under_inferscope_run_changes_nothing(gpu, early):
    start = "import inferscope; inferscope.start()"
    program = gpu.python(f"""
        {start if early else ""}
        assert driver.cuInit(0) == 0
        {"" if early else start}
        do("repeat 5\\nkernel k us=5\\nend\\nsync device")
    """)
    seen = gpu.play("", command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.kernels() == {"k": 5}
    assert seen.called("cuptiSubscribe") == 1
