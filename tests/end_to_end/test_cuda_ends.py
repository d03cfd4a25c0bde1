"""How programs that use a GPU end, fork, lose it, or share CUPTI with another profiler: what was recorded before is in
the trace, and nothing hangs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_gpu import KERNEL, OnGpu
from recording import Recorded, Trace, analyze, signalled, until

WORK = "repeat 20\nkernel k us=5\nend\nsync device\n"


def test_device_reset_and_then_more_work(gpu):
    seen = gpu.play(f"{WORK}reset\n{WORK}")
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.kernels() == {"k": 40}
    assert len({row["context"] for row in seen.work(KERNEL)}) == 2, "a new context after the reset"
    assert seen.calls()["cudaDeviceReset"] == 1
    assert seen.collector()["state"] == "on"


def test_reset_with_work_in_flight_as_the_last_thing(gpu):
    seen = gpu.play("repeat 20\nkernel k us=5\nend\nreset")
    assert seen.recorded.code == 0
    assert seen.kernels() == {"k": 20}


def test_a_fork_after_cuinit(gpu):
    """The child cannot use CUDA, and CUPTI must not be called in it; the parent goes on being recorded."""
    seen = gpu.play(f"{WORK}fork\nhost us=100\ninit\nend\n{WORK}")
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().split("\n")[:3] == ["cuInit 3", "child 0", "done"]
    assert seen.kernels() == {"k": 40}
    assert not [line for line in seen.log if "after fork" in line], "CUPTI was called in the forked child"


@pytest.mark.parametrize("end", ["_exit 7", "exit 7", "kill 9"])
def test_a_forked_child_that_ends_in_any_way(gpu, end):
    seen = gpu.play(f"{WORK}fork\n{end}\nend\n{WORK}")
    assert seen.recorded.code == 0
    expected = "child -9" if "kill" in end else "child 7"
    assert expected in seen.recorded.out.decode()
    assert seen.kernels() == {"k": 40}
    assert not [line for line in seen.log if "after fork" in line]


def test_a_python_program_that_forks_after_cuinit(gpu):
    program = gpu.python(f"""
        import os
        assert driver.cuInit(0) == 0
        do({WORK!r})
        child = os.fork()
        if child == 0:
            os._exit(0 if driver.cuInit(0) == 3 else 1)
        assert os.waitpid(child, 0)[1] == 0
        do({WORK!r})
    """)
    seen = gpu.play("", command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.kernels() == {"k": 40}


def test_a_child_that_forks_first_and_then_uses_cuda_is_recorded(gpu):
    """As vLLM's and torch's workers do: each process has its own recording."""
    program = gpu.python("""
        import os, sys
        children = []
        for rank in range(3):
            if (child := os.fork()) == 0:
                assert driver.cuInit(0) == 0
                do(f"repeat 10\\nkernel rank{rank} us=5\\nend\\nsync device")
                sys.exit(0)
            children.append(child)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    """)
    seen = gpu.play("", command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.kernels() == {"rank0": 10, "rank1": 10, "rank2": 10}
    assert len({row["process"] for row in seen.work(KERNEL)}) == 3


@pytest.mark.parametrize(("end", "code"), [("_exit 3", 3), ("kill 9", -signal.SIGKILL)])
def test_exit_inside_a_kernel_without_a_goodbye(gpu, start, tmp_path, end, code):
    """What was delivered before is in the trace; the kernel that still runs is not waited for."""
    go = tmp_path / "go"
    script = f"{WORK}deliver\nkernel endless us=600000000\nprint delivered\nawait {go}\n{end}"
    recording = start(gpu.app, env=gpu.environment(script, gpu.libraries.cupti("13.0")))
    assert recording.line() == "delivered"
    seen = OnGpu(Recorded(0, b"", b"", recording.trace))
    until(lambda: recording.trace.table("gpu"), "the recorder has written down what was delivered")
    go.touch()
    done = recording.finish()
    assert signalled(done.code, signal.SIGKILL) if code < 0 else done.code == code
    assert seen.kernels()["k"] == 20
    assert seen.calls()["cudaLaunchKernel"] == 21, "the launch itself was seen"
    assert seen.trace.manifest["state"] == "complete"


def test_exit_inside_a_kernel(gpu):
    seen = gpu.play(f"{WORK}kernel endless us=600000000\nexit 4")
    assert seen.recorded.code == 4
    assert seen.kernels()["k"] == 20, "an ordinary exit hands over what there is"


def test_killed_in_the_middle_of_a_flush(gpu):
    seen = gpu.play(f"on-flush kill\n{WORK}repeat 50\nkernel more us=5\nend\nsync device")
    assert signalled(seen.recorded.code, signal.SIGKILL)
    assert seen.trace.manifest["state"] == "complete"
    kernels = seen.kernels()
    assert set(kernels) <= {"k", "more"} and kernels["k"] <= 20 and kernels["more"] <= 50
    assert seen.calls()["cudaLaunchKernel"] == 70, "the calls were in the ring already"
    analyze(seen.trace)


def test_killed_while_it_works(gpu):
    seen = gpu.play(f"{WORK}deliver\nkernel last us=5\nkill 9")
    assert signalled(seen.recorded.code, signal.SIGKILL)
    assert seen.calls()["cudaLaunchKernel"] == 21
    assert set(seen.kernels()) <= {"k", "last"}


def test_a_flush_that_never_returns_does_not_hold_the_program_up(gpu):
    seen = gpu.play(f"on-flush hang\n{WORK}deliver")
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().splitlines()[-1] == "done"
    assert seen.kernels() == {"k": 20}


def test_a_device_that_disappears(gpu):
    seen = gpu.play(
        f"{WORK}deliver\nfail cuptiActivityFlushAll 999 after=1\nlost\nrepeat 5\nkernel never us=5\nend\nsync device"
    )
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().splitlines()[-1] == "done"
    assert seen.kernels() == {"k": 20}
    assert seen.calls()["cudaLaunchKernel"] == 25, "calls that failed are calls"


def test_a_second_subscriber_is_refused_while_we_record(gpu):
    seen = gpu.play(f"{WORK}subscribe\n{WORK}")
    assert "subscribe 39" in seen.recorded.out.decode()
    assert seen.kernels() == {"k": 40}


@pytest.mark.parametrize("how", ["finalize", "take", "disable 10"])
def test_a_subscription_that_is_taken_away_is_noticed_and_said(gpu, how):
    """Another profiler in the process ends ours, registers its own buffers, or switches kernels off."""
    seen = gpu.play(f"{WORK}deliver\n{how}\nrepeat 2000\nkernel unseen us=5\nend\nsync device")
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.kernels()["k"] == 20, "what was before is there"
    assert seen.kernels()["unseen"] == 0
    assert "another profiler" in seen.notes(), f"nothing is said: {seen.notes()!r}"
    assert "another profiler" in seen.trace.report


def test_another_profiler_was_first(gpu):
    """Ours inside torch.profiler's: it holds CUPTI, we say so and record the rest."""
    program = gpu.python("""
        from inferscope import scope
        assert driver.cuInit(0) == 0
        with scope("work"):
            do("repeat 3\\nkernel k us=5\\nend\\nsync device")
        print("done")
    """)
    seen = gpu.play("fail cuptiSubscribe 39", command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.collector()["state"] == "failed"
    assert "another profiler" in seen.collector()["reason"]
    assert seen.trace.texts(1) == ["work"], "the rest is recorded"
    assert "another profiler" in seen.trace.report


def test_kill_of_the_recorder_leaves_the_program_running(gpu, start, tmp_path):
    """The GPU's records stay in shared memory; `analyze` finds them."""
    go = tmp_path / "go"
    env = gpu.environment(f"{WORK}deliver\nprint ready\nawait {go}\n{WORK}print finished", gpu.libraries.cupti("13.0"))
    recording = start(gpu.app, env=env)
    assert recording.line() == "ready"
    ours = ("inferscope-rec\n", "inferscope-sig\n")
    (child,) = [pid for pid in children(recording.process.pid) if Path(f"/proc/{pid}/comm").read_text() not in ours]
    recording.kill_all_of_ours()
    go.touch()
    assert recording.process.stdout.readline().decode().strip() == "finished"
    until(lambda: not os.path.exists(f"/proc/{child}"), "the program ends by itself")
    text = analyze(recording.trace)
    assert "k" in text


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(pid) for pid in file.read().split()]


def test_late_attach_into_a_process_that_runs_cuda(gpu):
    """The Python API started in the middle: what comes after that is recorded."""
    program = gpu.python("""
        import inferscope, sys
        assert driver.cuInit(0) == 0
        do("repeat 5\\nkernel before us=5\\nend\\nsync device")
        inferscope.start(output=sys.argv[1])
        do("repeat 5\\nkernel after us=5\\nend\\nsync device")
        inferscope.stop()
        print("done")
    """)
    env = gpu.environment("", gpu.libraries.cupti("13.0"))
    folder = gpu.folder / "trace"
    done = subprocess.run([sys.executable, program, folder], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    seen = OnGpu(Recorded(done.returncode, done.stdout, done.stderr, Trace(folder)))
    assert seen.kernels() == {"after": 5}
