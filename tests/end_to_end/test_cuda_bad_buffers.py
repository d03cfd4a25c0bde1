"""Activity buffers as no manual promises them: late, out of order, twice, half valid, after the end, with records that
nobody knows. What is whole is recorded once, what is not is counted, and the program does not notice."""

import subprocess
import sys

import pytest
from fake_gpu import KERNEL, OnGpu
from recording import PATIENCE_S, Recorded, Trace

TEN = "\n".join(f"kernel k{at} us=5" for at in range(10)) + "\nsync device\n"
# A kernel in a buffer of its own.
ONE_EACH = "kernel k us=1 call=0\nsync device\nsplit\n"
ALL_TEN = {f"k{at}": 1 for at in range(10)}


def fine(seen):
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.recorded.out.decode().splitlines()[-1] == "done"
    return seen


@pytest.mark.parametrize("order", ["", "reverse"])
def test_buffers_that_come_late_and_out_of_order(gpu, order):
    one_each = "\n".join(f"kernel k{at} us=5\nsync device\nsplit" for at in range(10))
    seen = fine(gpu.play(f"hold\n{one_each}\nrelease {order}"))
    assert seen.kernels() == ALL_TEN
    assert [row["text"] for row in seen.work(KERNEL)] == [f"k{at}" for at in range(10)], "ordered by time all the same"
    assert seen.lost() == 0


def test_a_buffer_that_is_delivered_twice_counts_once(gpu):
    seen = fine(gpu.play(f"twice\n{TEN}deliver"))
    assert seen.kernels() == ALL_TEN
    assert len(seen.work(KERNEL)) == 10


@pytest.mark.parametrize("cut", [1, 8, 100, 215, 217])
def test_a_buffer_that_ends_in_the_middle_of_a_record(gpu, cut):
    """The last record is a wait of 56 bytes; behind 56 bytes the last kernels are cut."""
    seen = fine(gpu.play(f"{TEN}truncate {cut}\ndeliver\nkernel after us=5\nsync device"))
    kept = seen.kernels()
    assert kept.pop("after") == 1, "the recording goes on"
    assert set(kept.values()) == {1}
    assert 8 <= len(kept) <= 10
    assert all(f"k{at}" in kept for at in range(8)), "what is whole in front of the cut is there"


def test_garbage_behind_the_records(gpu):
    seen = fine(gpu.play(f"garbage\n{TEN}deliver\nkernel after us=5\nsync device"))
    assert seen.kernels() == ALL_TEN | {"after": 1}


@pytest.mark.parametrize("size", [8, 16, 64, 4096])
def test_record_kinds_unknown_to_us_are_skipped_and_counted(gpu, size):
    seen = fine(
        gpu.play(f"{TEN}unknown kind=900 size={size}\nunknown kind=901 size={size}\nkernel after us=5\nsync device")
    )
    assert seen.kernels() == ALL_TEN | {"after": 1}
    counted = [(row["reason"], row["count"]) for row in seen.trace.table("losses") if row["collector"] == "gpu"]
    assert sum(count for _, count in counted) == 2, counted
    assert {reason for reason, _ in counted} == {"unknown-cupti-record"}, counted
    assert "of a kind that this version does not know" in seen.trace.report


@pytest.mark.parametrize("grown", [8, 64])
@pytest.mark.parametrize("cuda", ["11.8", "13.4"])
def test_records_longer_than_any_known_version(gpu, cuda, grown):
    seen = fine(gpu.play(TEN, cupti=gpu.libraries.cupti(cuda, grown=grown)))
    assert seen.kernels() == ALL_TEN
    assert all(row["dur_ns"] == 5000 for row in seen.work(KERNEL))


def test_a_kernel_without_a_name(gpu):
    seen = fine(gpu.play("kernel NULL us=5\nkernel named us=5\nsync device"))
    assert sum(seen.kernels().values()) == 2
    assert seen.kernels()["named"] == 1


def test_records_that_cupti_dropped_are_counted_and_shown(gpu):
    seen = fine(gpu.play(f"{TEN}drop 1234\ndeliver"))
    assert seen.kernels() == ALL_TEN
    assert seen.lost() == 1234
    assert "1234" in seen.trace.report or "1,234" in seen.trace.report or "1 234" in seen.trace.report


def test_buffers_delivered_when_cupti_is_left(gpu):
    """Held until the recording has been stopped: the program neither crashes nor waits, and what comes is taken."""
    seen = fine(gpu.play(f"{TEN}deliver\nhold\nkernel held us=5\nsync device\nsplit"))
    assert any("late" in line for line in seen.log), "the fake did deliver it late"
    assert seen.kernels() == ALL_TEN | {"held": 1}
    assert seen.lost() == 0


@pytest.mark.parametrize("release", ["between", "during"])
def test_buffers_that_come_after_the_end_are_not_in_the_next_recording(gpu, release):
    """Nor is what is of the next recording lost, if CUPTI goes on with a buffer of the one before."""
    program = gpu.python(f"""
        import inferscope, sys
        assert driver.cuInit(0) == 0
        inferscope.start(output=sys.argv[1], overhead_budget="none")
        do("kernel one us=5\\nsync device\\ndeliver\\nhold for-good\\nkernel held us=5\\nsync device\\nsplit")
        inferscope.stop()
        {'do("release")' if release == "between" else ""}
        inferscope.start(output=sys.argv[2], overhead_budget="none")
        do("repeat 3\\nkernel two us=5\\nend\\nsync device")
        {'do("release")' if release == "during" else ""}
        inferscope.stop()
    """)
    env = gpu.environment("", gpu.libraries.cupti("13.0"))
    folders = [gpu.folder / "first", gpu.folder / "second"]
    done = subprocess.run([sys.executable, program, *folders], env=env, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    first, second = (OnGpu(Recorded(0, b"", b"", Trace(folder))) for folder in folders)
    assert (first.kernels(), second.kernels()) == ({"one": 1}, {"two": 3})
    assert "1 GPU operations of an earlier recording" in second.notes(), second.notes()
    assert second.lost() == 0


@pytest.mark.parametrize("buffers", [40, 90])
def test_a_burst_gets_every_buffer_that_is_reserved(gpu, buffers):
    """CUPTI takes so many before it gives one back: more than are kept ready, and nearly all of the 96 there are."""
    seen = fine(gpu.play(f"hold\nrepeat {buffers}\n{ONE_EACH}end\nrelease"))
    assert seen.kernels() == {"k": buffers}
    assert seen.lost() == 0


def test_more_buffers_than_there_are(gpu):
    seen = fine(gpu.play(f"hold\nrepeat 120\n{ONE_EACH}end\nrelease"))
    assert 120 - 96 <= seen.lost() < 120 - 90
    assert seen.kernels() == {"k": 120 - seen.lost()}
    assert f"requested a buffer {seen.lost()} times when none was free" in seen.notes(), seen.notes()


def test_a_kernel_that_never_ended_has_no_invented_times(gpu):
    """At the end CUPTI hands out what has not finished, without times: it is no work of 0 ns at the epoch."""
    seen = gpu.play("kernel done us=5\nsync device\nkernel endless us=60000000\nexit 0")
    assert seen.recorded.code == 0
    manifest = seen.trace.manifest
    for row in seen.work(KERNEL):
        assert row["start_ns"] >= manifest["started_ns"] - 10**9, row
    assert seen.kernels()["done"] == 1


def test_a_flood_with_many_buffers_in_flight(gpu):
    threads = "\n".join(f"thread\nrepeat 20000\nkernel t{at} us=1 call=0 stream={at}\nend\nend" for at in range(4))
    seen = fine(gpu.play(f"{threads}\njoin\nsync device"))
    assert sum(seen.kernels().values()) + seen.lost() == 80_000
    assert seen.lost() == 0
