"""What the driver does with memory is in the trace whole: in the pauses of the overhead budget, without launches,
when it fails, and for memory that is created and mapped."""

import pytest

(ALLOC, FREE, FAILED, CREATE, RELEASE, MAP, UNMAP, RETAIN, IMPORT, EXPORT, RESERVE, UNRESERVE, OPEN, CLOSE) = range(
    1, 15
)
OUT_OF_MEMORY = 2
MIB = 1 << 20


def memory(seen, *columns):
    return [tuple(row[column] for column in columns) for row in seen.trace.table("allocations")]


def live(rows):
    """The bytes that are alive after all these, by the address."""
    alive = {}
    for row in rows:
        if row["operation"] == ALLOC:
            assert row["address"] not in alive
            alive[row["address"]] = row["bytes"]
        elif row["operation"] == FREE:
            del alive[row["address"]]
    return alive


def test_a_failed_allocation_is_recorded_with_what_was_asked_for(gpu):
    seen = gpu.play(f"""
        malloc bytes={70 << 30} address=0x7f00001000 error={OUT_OF_MEMORY}
        malloc bytes=4096 address=0x7f00001000 error=1 via=cudaMallocPitch
        create bytes=2097152 handle=7 error={OUT_OF_MEMORY}
        free address=0x7f00001000 error=1
        map address=0x7f00001000 bytes=2097152 handle=7 error=1
        malloc bytes=64 address=0x7f00002000
    """)
    assert seen.recorded.code == 0, seen.recorded.told
    assert memory(seen, "operation", "bytes", "address", "error", "handle") == [
        (FAILED, 70 << 30, 0, OUT_OF_MEMORY, None),
        (FAILED, 4096, 0, 1, None),
        (FAILED, 2 * MIB, 0, OUT_OF_MEMORY, None),
        (ALLOC, 64, 0x7F00002000, None, None),
    ]
    names = seen.trace.names()
    assert [names[row["name"]] for row in seen.trace.table("allocations")][:3] == [
        "cudaMalloc",
        "cudaMallocPitch",
        "cuMemCreate",
    ]


@pytest.mark.parametrize("detail", ["kernel", "launch", "all"])
def test_memory_is_recorded_whatever_the_detail(gpu, detail):
    seen = gpu.play(
        """
        malloc bytes=4096 address=0x1000 nested=cuMemAlloc_v2
        kernel k us=2
        malloc bytes=512 address=0x2000 via=cuMemAlloc_v2
        free address=0x1000 nested=cuMemFree_v2
        sync device
        """,
        options=("--gpu-detail", detail),
    )
    assert seen.recorded.code == 0, seen.recorded.told
    assert memory(seen, "operation", "address", "bytes") == [
        (ALLOC, 0x1000, 4096),
        (ALLOC, 0x2000, 512),
        (FREE, 0x1000, 0),
    ], "the driver's call inside the runtime's is the same allocation"
    assert set(seen.calls()) == (
        set()
        if detail == "kernel"
        else {"cudaMalloc", "cudaLaunchKernel", "cuMemAlloc", "cudaFree", "cudaDeviceSynchronize"}
    )


@pytest.mark.parametrize("detail", ["launch", "all"])
def test_not_one_allocation_is_missing_in_the_pauses_of_the_overhead_budget(gpu, detail):
    """Two per cent: most of the time nothing else of the GPU is recorded. Every address is taken and given back in
    turn, so that one call that is missing leaves a hole."""
    program = gpu.python("""
        import time
        assert driver.cuInit(0) == 0
        count, until = 0, time.monotonic() + 3.5
        while time.monotonic() < until:
            for _ in range(20):
                do(f"malloc bytes=4096 address={0x10000 + count % 7 * 0x1000:#x} call=0 nested=cuMemAlloc_v2")
                if count >= 6:
                    do(f"free address={0x10000 + (count - 6) % 7 * 0x1000:#x} call=0 nested=cuMemFree_v2")
                count += 1
            do("kernel k us=50\\nsync device")
        print("taken", count)
    """)
    seen = gpu.play("", command=(program,), options=("--overhead-budget", "2%", "--gpu-detail", detail))
    assert seen.recorded.code == 0, seen.recorded.told
    taken = int(seen.recorded.out.decode().split("taken ")[1].split()[0])
    rows = seen.trace.table("allocations")
    assert sum(row["operation"] == ALLOC for row in rows) == taken
    assert len(live(rows)) == 6
    assert 0 < seen.calls()["cudaMalloc"] < taken, "some of the time was recorded, and some was not"
    assert seen.lost() == 0


def test_an_allocation_inside_another_call_counts(gpu):
    """What a call of the runtime that is no allocation takes for itself is memory as well; the call of the driver is
    not shown again."""
    seen = gpu.play("malloc bytes=4096 address=0x1000 via=cudaGraphInstantiateWithFlags nested=cuMemAlloc_v2")
    assert memory(seen, "operation", "bytes") == [(ALLOC, 4096)]
    assert seen.calls() == {"cudaGraphInstantiateWithFlags": 1}


def test_virtual_memory_is_recorded_with_its_handles(gpu):
    seen = gpu.play("""
        devices 2
        reserve address=0x700000000000 bytes=8388608
        create bytes=2097152 handle=0x11 device=1
        create bytes=4096 handle=0x12 location=2
        map address=0x700000000000 bytes=2097152 handle=0x11
        retain address=0x700000000000 handle=0x11
        export handle=0x11
        import handle=0x13
        unmap address=0x700000000000 bytes=2097152
        unhandle handle=0x11
        unreserve address=0x700000000000 bytes=8388608
        ipc-open address=0x710000000000
        ipc-close address=0x710000000000
    """)
    assert seen.recorded.code == 0, seen.recorded.told
    assert memory(seen, "operation", "address", "bytes", "handle", "device", "memory") == [
        (RESERVE, 0x700000000000, 8 * MIB, None, 0, 3),
        (CREATE, 0, 2 * MIB, 0x11, 1, 3),
        (CREATE, 0, 4096, 0x12, 0, 2),
        (MAP, 0x700000000000, 2 * MIB, 0x11, 0, 3),
        (RETAIN, 0x700000000000, 0, 0x11, 0, 3),
        (EXPORT, 0, 0, 0x11, 0, 3),
        (IMPORT, 0, 0, 0x13, 0, 3),
        (UNMAP, 0x700000000000, 2 * MIB, None, 0, 3),
        (RELEASE, 0, 0, 0x11, 0, 3),
        (UNRESERVE, 0x700000000000, 8 * MIB, None, 0, 3),
        (OPEN, 0x710000000000, 0, None, 0, 3),
        (CLOSE, 0x710000000000, 0, None, 0, 3),
    ]
    assert seen.lost() == 0


def test_sleep_and_wake_a_hundred_times(gpu):
    seen = gpu.play(
        """
        repeat 100
          create bytes=2097152 handle=0x11
          map address=0x700000000000 bytes=2097152 handle=0x11
          unmap address=0x700000000000 bytes=2097152
          unhandle handle=0x11
        end
        """,
        options=("--gpu-detail", "kernel"),
    )
    rows = memory(seen, "operation")
    assert rows == [(CREATE,), (MAP,), (UNMAP,), (RELEASE,)] * 100
    times = [row["time_ns"] for row in seen.trace.table("allocations")]
    assert times == sorted(times)
