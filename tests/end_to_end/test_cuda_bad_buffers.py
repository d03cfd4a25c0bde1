"""Activity buffers as no manual promises them: late, out of order, twice, half valid, after the end, with records that
nobody knows. What is whole is recorded once, what is not is counted, and the program does not notice."""

import pytest
from fake_gpu import KERNEL

TEN = "\n".join(f"kernel k{at} us=5" for at in range(10)) + "\nsync device\n"
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
    counted = [(row["what"], row["count"]) for row in seen.trace.table("losses") if row["collector"] == "gpu"]
    assert sum(count for _, count in counted) == 2, counted
    assert any("kind" in what or "unknown" in what for what, _ in counted), counted
    assert counted[0][0] in seen.trace.report


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


def test_buffers_delivered_after_the_end(gpu):
    """Held until the recording has been stopped: the program neither crashes nor waits."""
    seen = fine(gpu.play(f"{TEN}deliver\nhold\nkernel held us=5\nsync device\nsplit"))
    kernels = seen.kernels()
    kernels.pop("held", None)
    assert kernels == ALL_TEN, "what came in time is there"
    assert any("late" in line for line in seen.log), "and the fake did deliver it late"


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
