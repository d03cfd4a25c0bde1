"""Blocks of PyTorch's allocators are in the trace as they were handed out, with a stand-in for its libraries
(tests/fake_torch) on the GPU that tests/fake_cupti plays. Where they cannot be recorded, that is said and the program
goes on."""

import sys

import pytest
from recording import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "fake_torch"))

import fake_torch

ALLOCATED, FREED, OUT_OF_MEMORY = 1, 2, 3
LOAD = """
    import ctypes, os, sys
    def load(folder, c10="libc10.so"):
        library = ctypes.CDLL(folder + "/libc10_cuda.so")
        library.c10_cuda_block.argtypes = (ctypes.c_uint64, ctypes.c_int64, ctypes.c_int)
        return library, ctypes.CDLL(folder + "/" + c10)
"""


@pytest.fixture(scope="session")
def torch(tmp_path_factory):
    """The stand-in; it is loaded as `import torch` does."""
    return fake_torch.build(tmp_path_factory.mktemp("torch"))


def play(gpu, text, *folders, options=(), **more):
    program = gpu.python(LOAD + text)
    if not any(str(option).startswith("--memory-events") for option in options):
        options = ("--memory-events", "gpu", *options)
    seen = gpu.play("", command=(program, *folders), options=options, **more)
    assert seen.recorded.code == 0, seen.recorded.told
    return seen


def blocks(seen, *columns):
    return [tuple(row[column] for column in columns) for row in seen.trace.table("blocks")]


USES_TWO_DEVICES = """
    cuda, c10 = load(sys.argv[1])
    assert driver.cuInit(0) == 0
    cuda.c10_cuda_block(0x1000, 4096, 0)
    cuda.c10_cuda_block(0x2000, 1 << 33, 1)
    cuda.c10_cuda_block(0x1000, -4096, 0)
    cuda.c10_cuda_fail.argtypes = (ctypes.c_int64, ctypes.c_int)
    cuda.c10_cuda_fail(70 << 30, 1)
    print("told", c10.c10_told_events(), os.getpid())
"""


def test_every_block_is_recorded_and_pytorch_is_told_of_it_all_the_same(gpu, torch):
    seen = play(gpu, USES_TWO_DEVICES, torch)
    assert blocks(seen, "device", "operation", "address", "bytes", "allocated", "reserved") == [
        (0, ALLOCATED, 0x1000, 4096, 4096, 1 << 30),
        (1, ALLOCATED, 0x2000, 1 << 33, 1 << 33, 1 << 30),
        (0, FREED, 0x1000, 4096, 0, 1 << 30),
        (1, OUT_OF_MEMORY, 0, 70 << 30, 1 << 33, 1 << 30),
    ]
    _, told, pid = seen.recorded.out.decode().split()
    assert int(told) == 4
    assert {row["thread"] for row in seen.trace.table("blocks")} == {int(pid)}
    assert seen.collector("blocks")["state"] == "on"
    assert seen.lost() == 0


def test_without_cupti_the_blocks_are_there(gpu, torch):
    seen = play(gpu, USES_TWO_DEVICES, torch, cupti=None)
    assert seen.collector()["state"] == "failed"
    assert len(blocks(seen, "bytes")) == 4


@pytest.mark.parametrize("option", ["--memory-events=none", "--gpu-detail=off"])
def test_what_is_switched_off_is_not_touched(gpu, torch, option):
    seen = play(gpu, USES_TWO_DEVICES, torch, options=(option,))
    assert blocks(seen, "bytes") == []
    assert "told 4" in seen.recorded.out.decode()


def test_many_threads_at_once_lose_nothing(gpu, torch):
    seen = play(
        gpu,
        """
    import threading
    cuda, c10 = load(sys.argv[1])
    assert driver.cuInit(0) == 0
    threads = [threading.Thread(target=cuda.c10_cuda_many, args=(5000,)) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    """,
        torch,
    )
    rows = blocks(seen, "operation", "thread")
    assert len(rows) == 80_000 and sum(operation == ALLOCATED for operation, _ in rows) == 40_000
    assert len({thread for _, thread in rows}) == 8
    assert seen.lost() == 0


def test_two_copies_of_pytorch_each_go_on_to_their_own(gpu, torch, tmp_path):
    other = fake_torch.build(tmp_path / "other", c10="libc10-other.so")
    seen = play(
        gpu,
        """
    (cuda, c10), (cuda2, c102) = load(sys.argv[1]), load(sys.argv[2], "libc10-other.so")
    assert driver.cuInit(0) == 0
    cuda.c10_cuda_block(0x1000, 1, 0)
    [cuda2.c10_cuda_block(0x2000 + at, 2, 0) for at in range(5)]
    print("told", c10.c10_told_events(), c102.c10_told_events())
    """,
        torch,
        other,
    )
    assert "told 1 5" in seen.recorded.out.decode()
    assert sorted(bytes for (bytes,) in blocks(seen, "bytes")) == [1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(("how", "why"), [("reports", "PyTorch is not supported"), ("protected", "RELRO")])
def test_a_pytorch_that_cannot_be_recorded_is_said(gpu, tmp_path, how, why):
    options = {"reports": False} if how == "reports" else {"protected": True}
    seen = play(gpu, USES_TWO_DEVICES, fake_torch.build(tmp_path / how, **options))
    assert blocks(seen, "bytes") == []
    assert seen.collector("blocks")["state"] == "failed"
    assert why in seen.notes()


def test_a_tool_that_takes_our_function_out_is_said(gpu, torch):
    seen = play(
        gpu,
        """
    cuda, c10 = load(sys.argv[1])
    assert driver.cuInit(0) == 0
    cuda.c10_cuda_block(0x1000, 1, 0)
    maps = [line.strip() for line in open("/proc/self/maps")]
    base = min(int(line.split("-")[0], 16) for line in maps if line.endswith("libc10_cuda.so"))
    slot = ctypes.c_uint64.from_address(base + int(sys.argv[2]))
    slot.value = ctypes.cast(c10["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"], ctypes.c_void_p).value
    cuda.c10_cuda_block(0x2000, 2, 0)
    """,
        torch,
        fake_torch.slot(torch / "libc10_cuda.so"),
    )
    assert blocks(seen, "bytes") == [(1,)]
    assert seen.collector("blocks")["state"] == "failed"
    assert "another tool" in seen.notes()


def test_a_forked_child_has_blocks_of_its_own(gpu, torch):
    seen = play(
        gpu,
        """
    c10 = ctypes.CDLL(sys.argv[1] + "/libc10.so")
    from inferscope import _native
    _native.memory_start(True)
    c10.c10_cpu_alloc(1)
    if os.fork() == 0:
        c10.c10_cpu_alloc(2)
        os._exit(0)
    os.wait()
    c10.c10_cpu_alloc(3)
    """,
        torch,
        options=("--memory-events", "all"),
    )
    rows = sorted(blocks(seen, "bytes", "process"))
    assert [bytes for bytes, _ in rows] == [1, 2, 3]
    assert rows[0][1] == rows[2][1] != rows[1][1]


@pytest.mark.parametrize("whose", ["gpu", "all"])
def test_the_cpus_blocks_are_recorded_where_they_are_asked_for(gpu, torch, whose):
    text = """
    c10 = ctypes.CDLL(sys.argv[1] + "/libc10.so")
    c10.c10_cpu_alloc.restype = ctypes.c_void_p
    c10.c10_cpu_free.argtypes = (ctypes.c_void_p,)
    from inferscope import _native
    _native.memory_start(True)
    address = c10.c10_cpu_alloc(12345)
    c10.c10_cpu_free(address)
    print("told", c10.c10_told_events())
    """
    seen = play(gpu, text, torch, options=("--memory-events", whose))
    both = [(-1, ALLOCATED, 12345, None), (-1, FREED, 0, None)]
    assert blocks(seen, "device", "operation", "bytes", "allocated") == (both if whose == "all" else [])
    assert "told 2" in seen.recorded.out.decode()
