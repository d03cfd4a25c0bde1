"""What a device did is in the trace as it was, whatever CUDA version says it: kernels, copies, waits, memory, graphs;
each linked to the call that asked for it."""

import html

import pytest
from fake_gpu import API_CALL, KERNEL, MEMCPY, MEMSET, MIGRATION, OVERHEAD, SYNC, VERSIONS
from recording import SCOPE

EVERYTHING = """
    devices 2
    kernel "gemm<float, 128>(float*)" us=20 grid=10,2,3 block=128,4,2 registers=40 static=1024 dynamic=2048
    kernel quick us=5 device=1 stream=9 via=cuLaunchKernelEx
    kernel together us=5 type=1 via=cudaLaunchCooperativeKernel
    memcpy kind=HtoD bytes=4096 from=pinned us=5
    memcpy kind=DtoH bytes=512 us=5 via=cudaMemcpy
    peer from=0 to=1 bytes=2048 us=4
    memset bytes=64 us=3
    malloc bytes=1048576 address=0x7f00001000
    free bytes=1048576 address=0x7f00001000
    malloc bytes=2048 address=0x7f00002000 via=cudaMallocAsync
    graph id=3
      kernel node_a node=11 us=5
      memcpy kind=DtoD bytes=99 node=12 us=5
      kernel node_b node=13 us=5
    end
    overhead us=7
    sync stream
    sync device
"""


@pytest.mark.parametrize("cuda", VERSIONS)
def test_every_record_is_read_in_the_layout_of_each_version(gpu, cuda):
    seen = gpu.play(EVERYTHING, cuda)
    assert seen.recorded.code == 0, seen.recorded.told
    assert seen.collector()["state"] == "on", seen.collector()
    kernels = {row["text"]: row for row in seen.work(KERNEL)}
    gemm = kernels["gemm<float, 128>(float*)"]
    shape = [gemm[name] for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers")]
    assert shape == [10, 2, 3, 128, 4, 2, 40]
    assert (gemm["shared_static"], gemm["shared_dynamic"], gemm["dur_ns"]) == (1024, 2048, 20_000)
    assert (gemm["device"], gemm["stream"], gemm["graph"], gemm["node"]) == (0, 7, None, None)
    assert (kernels["quick"]["device"], kernels["quick"]["stream"]) == (1, 9)
    assert kernels["quick"]["context"] != gemm["context"]
    assert kernels["together"]["detail"] & 0xFF == 1, "CUPTI's launch type: cooperative"
    assert (kernels["node_a"]["graph"], kernels["node_a"]["node"], kernels["node_b"]["node"]) == (3, 11, 13)

    def parts(row):
        return list(row["detail"].to_bytes(4, "little"))

    copies = {row["bytes"]: row for row in seen.work(MEMCPY)}
    assert sorted(copies) == [99, 512, 2048, 4096]
    assert parts(copies[4096])[:3] == [1, 2, 3], "host to device, from pinned memory to the device's"
    assert parts(copies[512])[:3] == [2, 3, 1], "device to host, into pageable memory"
    assert parts(copies[4096])[3] & 1 and not parts(copies[512])[3] & 1, "cudaMemcpy is not asynchronous"
    assert parts(copies[2048])[0] == 10, "from one device to the other"
    assert (copies[99]["graph"], copies[99]["node"]) == (3, 12)
    (memset,) = seen.work(MEMSET)
    assert (memset["bytes"], memset["dur_ns"]) == (64, 3000)
    assert sorted(row["detail"] & 0xFF for row in seen.work(SYNC)) == [3, 4]
    memory = [(row["operation"], row["address"], row["pool"], row["memory"]) for row in seen.trace.table("allocations")]
    assert memory == [(1, 0x7F00001000, 0, 3), (2, 0x7F00001000, 0, 3), (1, 0x7F00002000, 1, 3)]
    taken = [row["bytes"] for row in seen.trace.table("allocations") if row["operation"] == 1]
    assert taken == [1 << 20, 2048]
    (overhead,) = seen.trace.slices(OVERHEAD)
    assert overhead["dur_ns"] == 7000
    assert seen.lost() == 0


def test_every_work_is_linked_to_the_call_that_asked_for_it_and_follows_it(gpu):
    seen = gpu.play(EVERYTHING)
    calls = {row["id"]: row for row in seen.trace.slices(API_CALL)}
    work = seen.work()
    assert work
    for row in work:
        call = calls[row["correlation"]]
        assert call["start_ns"] <= row["start_ns"], f"{row['text']} began before {call['text']}"
    asked = {row["text"]: calls[row["correlation"]]["text"] for row in work if row["kind"] == KERNEL}
    assert asked == {
        "gemm<float, 128>(float*)": "cudaLaunchKernel",
        "quick": "cuLaunchKernelEx",
        "together": "cudaLaunchCooperativeKernel",
        "node_a": "cudaGraphLaunch",
        "node_b": "cudaGraphLaunch",
    }


def test_a_launch_counts_once_and_cheap_calls_not_at_all(gpu):
    seen = gpu.play("""
        repeat 50
          call cudaGetDevice
          kernel k nested=cuLaunchKernel us=2
        end
        sync device nested=cuCtxSynchronize
    """)
    assert seen.calls() == {"cudaLaunchKernel": 50, "cudaDeviceSynchronize": 1}
    assert seen.kernels() == {"k": 50}


@pytest.mark.parametrize(
    ("detail", "calls"),
    [("kernel", {}), ("launch", {"cudaLaunchKernel": 3, "cudaDeviceSynchronize": 1}), ("off", {})],
)
def test_the_detail_decides_what_is_recorded(gpu, detail, calls):
    seen = gpu.play("repeat 3\ncall cudaGetDevice\nkernel k us=2\nend\nsync device", options=("--gpu-detail", detail))
    assert seen.recorded.code == 0
    assert seen.calls() == calls
    assert seen.kernels() == ({} if detail == "off" else {"k": 3})
    if detail == "off":
        assert seen.called("cuptiSubscribe") == 0, "switched off, nothing of CUPTI is touched"


def test_asking_whether_cupti_still_knows_us_records_no_call(gpu):
    """It is asked by switching a callback on, once a second: with kernels alone that call stays unrecorded."""
    program = gpu.python("""
        import os, time
        assert driver.cuInit(0) == 0
        def asked(): return open(os.environ["FAKE_CUPTI_LOG"]).read().count("cuptiEnableCallback")
        before, until = asked(), time.monotonic() + 60
        do("kernel k us=2\\nsync device")
        while asked() == before and time.monotonic() < until:
            time.sleep(0.05)
        assert asked() > before
        do("kernel k us=2\\nsync device")
    """)
    seen = gpu.play("", command=(program,), options=("--gpu-detail", "kernel"))
    assert seen.recorded.code == 0, "it was asked"
    assert (seen.calls(), seen.work(SYNC), seen.kernels()) == ({}, [], {"k": 2})


def test_all_detail_records_every_call_and_migrations(gpu):
    script = """
        call cudaGetDevice
        kernel k us=2
        migrate kind=HtoD bytes=65536 us=30
        host us=500
        sync device
    """
    seen = gpu.play(script, options=("--gpu-detail", "all"))
    assert seen.calls() == {"cudaGetDevice": 1, "cudaLaunchKernel": 1, "cudaDeviceSynchronize": 1}
    (migration,) = seen.work(MIGRATION)
    assert (migration["bytes"], migration["dur_ns"], migration["detail"] & 0xFF) == (65536, 30_000, 1)


def test_several_devices_and_threads(gpu):
    threads = "\n".join(
        f"thread\nrepeat 200\nkernel on_{device} device={device} stream={10 + device} us=3\nend\n"
        f"sync stream device={device} stream={10 + device}\nend"
        for device in range(4)
    )
    seen = gpu.play(f"devices 4\n{threads}\njoin")
    assert seen.kernels() == {f"on_{device}": 200 for device in range(4)}
    assert {(row["text"], row["device"], row["stream"]) for row in seen.work(KERNEL)} == {
        (f"on_{device}", device, 10 + device) for device in range(4)
    }
    devices = seen.trace.manifest["processes"][0]["devices"]
    assert [(device["ordinal"], device["name"]) for device in devices] == [(at, f"Fake GPU {at}") for at in range(4)]
    assert len({device["uuid"] for device in devices}) == 4
    launchers = {row["thread"] for row in seen.trace.slices(API_CALL) if row["text"] == "cudaLaunchKernel"}
    assert len(launchers) == 4, "each launch is on the thread that made it"
    report = seen.trace.report
    assert all(f"Fake GPU {device}" in report for device in range(4))


def test_many_records_none_lost(gpu):
    seen = gpu.play("repeat 50000\nkernel k us=1 call=0\nend\nsync device")
    assert seen.kernels() == {"k": 50_000}
    assert seen.calls()["cudaLaunchKernel"] == 50_000
    assert seen.lost() == 0


def test_python_and_its_gpu_are_one_process_on_one_clock(gpu):
    program = gpu.python("""
        from inferscope import scope, step
        assert driver.cuInit(0) == 0
        for _ in step(range(20), name="request"):
            with scope("forward"):
                do("kernel gemm us=20")
            do("sync device")
    """)
    seen = gpu.play("", command=(program,))
    assert seen.recorded.code == 0, seen.recorded.told
    assert len(seen.trace.manifest["processes"]) == 1, "two segments, one process"
    assert seen.kernels() == {"gemm": 20}
    scopes = sorted((row["start_ns"], row["start_ns"] + row["dur_ns"]) for row in seen.trace.slices(SCOPE))
    launches = sorted(row["start_ns"] for row in seen.trace.slices(API_CALL) if row["text"] == "cudaLaunchKernel")
    assert len(scopes) == len(launches) == 20
    for (begin, end), launch in zip(scopes, launches, strict=True):
        assert begin <= launch <= end, "a launch lies in the scope that made it"


def test_the_report_shows_the_gpu(gpu):
    seen = gpu.play(EVERYTHING)
    report = html.unescape(seen.trace.report)
    for words in ("## GPU", "gemm<float, 128>", "Fake GPU 0", "Fake GPU 1", "host → device, pinned", "GPU clock"):
        assert words in report


def test_a_wrong_device_clock_is_said(gpu):
    """Kernels that seem to start before their launch: the clocks disagree, and the report does not hide it."""
    seen = gpu.play("skew -50000\nrepeat 20\nkernel k us=5\nsync device\nend")
    assert seen.kernels() == {"k": 20}
    lines = [line for line in seen.trace.report.splitlines() if line.startswith("|") and "GPU clock" in line]
    assert any("**warn**" in line or "**bad**" in line for line in lines)
    assert any("20 of 20 GPU operations" in line for line in lines)
