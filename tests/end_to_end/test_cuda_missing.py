"""Work that is not reported, and what is said about it: the reason where one is known, and never another profiler where
there is none."""

import pytest
from fake_gpu import KERNEL, SYNC
from recording import inferscope

WORK = "repeat 20\nkernel k us=5\nend\nsync device\n"


def fine(seen):
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.collector()["state"] == "on", seen.collector()
    assert "profiler" not in seen.notes()
    return seen


def test_calls_that_give_the_host_something_to_do(gpu):
    """Host functions, of which no record comes: as many as one likes may be the last of a program."""
    seen = fine(gpu.play(f"{WORK}repeat 100\ncall cudaLaunchHostFunc\nend\nsync device"))
    assert seen.kernels() == {"k": 20}


def test_calls_that_cuda_refuses_are_said_with_the_first_error(gpu):
    seen = fine(gpu.play(f"{WORK}deliver\nlost\nrepeat 100\nkernel never us=5\nend\nsync device"))
    assert seen.kernels() == {"k": 20}
    assert "101 CUDA calls failed" in seen.notes()
    assert "the first was cudaLaunchKernel, with error 719" in seen.notes()


def test_a_flush_that_fails_is_said_with_its_reason(gpu):
    seen = gpu.play("fail cuptiActivityFlushAll 999\nrepeat 50\nkernel k us=5\nend\nsync device")
    assert seen.recorded.code == 0
    assert seen.kernels() == {}
    assert seen.collector()["state"] == "failed"
    assert "did not deliver its last records" in seen.notes()
    report = inferscope("analyze", seen.trace.folder).stdout.decode()
    assert "did not deliver its last records" in report
    assert "no losses" not in report and "none lost" not in report


def test_callbacks_that_cupti_refuses_are_not_taken_for_another_profiler(gpu):
    """Asked once a second whether it still knows us, it refuses as it did at the start."""
    seen = fine(
        gpu.play(f"fail cuptiEnableCallback 999\n{WORK}deliver\nidle us=1500000\nkernel last us=5\nsync device")
    )
    assert seen.kernels() == {"k": 20, "last": 1}
    assert seen.collector("launches")["state"] == "failed"


def test_a_kernel_longer_than_our_patience(gpu):
    """With so much queued behind it that nothing finishes for over ten seconds: all of it comes in the end."""
    seen = fine(gpu.play("kernel long us=12500000\nrepeat 100\nkernel behind us=5\nend\nsync device"))
    assert seen.kernels() == {"long": 1, "behind": 100}


def test_graphs_that_are_launched_while_nothing_is_recorded(gpu):
    """Graph launches are progress calls, which are counted in any window: no work has to come of those."""
    program = gpu.python("""
        import time
        assert driver.cuInit(0) == 0
        for _ in range(2000):
            do("graph id=7\\nkernel k us=5 node=3\\nend\\nsync stream")
        # Until some window records, in which nothing happens.
        time.sleep(3)
    """)
    fine(gpu.play("", command=(program,), options=("--overhead-budget", "2%")))


def test_driver_calls_after_a_switch_inside_a_runtime_call(gpu):
    """The end of a window finds a thread inside cudaLaunchKernel, whose end never calls back: what the thread asks of
    the driver later is no part of that call."""
    program = gpu.python("""
        import threading, time
        assert driver.cuInit(0) == 0
        done = threading.Event()
        def synchronise():
            while not done.is_set():
                do("repeat 50\\nsync device\\nend")
        def launches():
            time.sleep(0.35)
            do("kernel r us=5 call=400000")
            end = time.monotonic() + 6
            while time.monotonic() < end:
                do("repeat 20\\nkernel d us=5 via=cuLaunchKernel\\nend")
                time.sleep(0.005)
        other = threading.Thread(target=synchronise)
        other.start()
        launches()
        done.set()
        other.join()
    """)
    seen = gpu.play("", command=(program,), options=("--overhead-budget", "10%"))
    assert seen.recorded.code == 0
    recorded, calls = seen.kernels()["d"], seen.calls()["cuLaunchKernel"]
    assert recorded > 100
    # At the edges of a window either may be there without the other.
    assert abs(calls - recorded) < recorded / 2, (calls, recorded)


def test_more_names_than_there_is_room_for(gpu):
    """A program that makes up a name for each kernel: calls, copies, waits and notes keep theirs."""
    program = gpu.python("""
        assert driver.cuInit(0) == 0
        for first in range(0, 210_000, 1000):
            do("\\n".join(f"kernel request_{at} us=1 call=0" for at in range(first, first + 1000)))
        do("sync device\\ndeliver\\nmemcpy kind=HtoD bytes=10 us=2\\nsync stream\\ndeliver")
    """)
    seen = fine(gpu.play("", command=(program,), options=("--overhead-budget", "none")))
    assert len(seen.work(KERNEL)) + seen.lost() == 210_000
    assert "(unknown)" not in seen.calls()
    assert {row["text"] for row in seen.work(SYNC)} == {"wait for the device", "wait for a stream"}
    assert "the table of names is full" in seen.notes()


@pytest.mark.parametrize(("call", "stream"), [("cudaStreamSynchronize", 7), ("cudaStreamSynchronize_ptsz", 8)])
def test_a_wait_for_the_default_stream_is_for_the_threads_own_where_it_has_one(gpu, call, stream):
    seen = fine(gpu.play(f"kernel k us=5 stream={stream}\nsync stream stream=0 via={call}"))
    (wait,) = seen.work(SYNC)
    assert wait["stream"] == stream
