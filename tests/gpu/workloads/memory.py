"""Programs whose memory is known: `python memory.py <what> [number]`. Each prints, as its last line of JSON, what it
knows of itself. Those that are compared with what was recorded end without giving anything back (`os._exit`)."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from typing import Any

from device_memory import MIB, Nvml, Runtime, VirtualMemory

# Samples of the device are taken ten times a second: this is enough for some.
SEEN = 0.5


def say(**known: object) -> None:
    print(json.dumps(known), flush=True)


def leave(code: int = 0) -> None:
    """Ends with everything still allocated, after the recorder has seen it."""
    time.sleep(SEEN)
    os._exit(code)


def started() -> Any:
    """PyTorch with a context: what that alone takes is there, and was sampled, before anything is measured."""
    import torch

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    time.sleep(SEEN)
    return torch


def allocator(torch: Any) -> dict[str, int]:
    stats = torch.cuda.memory_stats()
    return {
        "allocated": stats["allocated_bytes.all.current"],
        "peak": stats["allocated_bytes.all.peak"],
        "reserved": stats["reserved_bytes.all.current"],
        "retries": stats["num_alloc_retries"],
        "ooms": stats["num_ooms"],
    }


def oom(torch: Any, _: int) -> None:
    """A request that no hole can hold, though all of them together could: segments of 100 MiB, each with 60 in use.
    With expandable segments, what is free is one piece."""
    free, _total = torch.cuda.mem_get_info()
    room = 2100 * MIB
    weights = torch.empty((free - room) // MIB * MIB, dtype=torch.uint8, device="cuda")
    large = [torch.empty(100 * MIB, dtype=torch.uint8, device="cuda") for _ in range(20)]
    large.clear()
    held = [torch.empty(60 * MIB, dtype=torch.uint8, device="cuda") for _ in range(20)]
    say(asked=200 * MIB, pid=os.getpid(), held=len(held), weights=weights.numel(), **allocator(torch))
    time.sleep(SEEN)
    held.append(torch.empty(200 * MIB, dtype=torch.uint8, device="cuda"))
    say(served=True, **allocator(torch))


def killed(torch: Any, number: int) -> None:
    held = [torch.empty(number_of * MIB, dtype=torch.uint8, device="cuda") for number_of in range(1, number + 1)]
    del held[::3]
    say(pid=os.getpid(), **allocator(torch))
    time.sleep(SEEN)
    os.kill(os.getpid(), signal.SIGKILL)


def sleep_mode(torch: Any, cycles: int) -> None:
    """Memory of the driver that is created and mapped, unmapped and released, again and again."""
    nvml, memory = Nvml(), VirtualMemory(16, 64 * MIB)
    memory.wake(16)
    memory.sleep()
    time.sleep(SEEN)
    before = nvml.used()
    for _ in range(cycles):
        memory.wake(16)
        memory.sleep()
    asleep = nvml.used()
    memory.wake(16)
    time.sleep(SEEN)
    awake = nvml.used()
    memory.sleep()
    memory.wake(5)
    say(pid=os.getpid(), before=before, asleep=asleep, awake=awake, end=nvml.used(), chunk=memory.chunk, **nvml.said())
    leave()


def expandable(torch: Any, cycles: int) -> None:
    """The same by PyTorch's own expandable segments."""
    nvml = Nvml()

    def wake(count: int) -> list[Any]:
        return [torch.empty(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(count)]

    held = wake(8)
    held.clear()
    torch.cuda.empty_cache()
    time.sleep(SEEN)
    before, reserved = nvml.used(), allocator(torch)["reserved"]
    for _ in range(cycles):
        held = wake(16)
        held.clear()
        torch.cuda.empty_cache()
    asleep = nvml.used()
    held = wake(7)
    say(pid=os.getpid(), before=before, reserved_before=reserved, asleep=asleep, end=nvml.used(), **allocator(torch))
    leave()


def everything(torch: Any, _: int) -> None:
    """One of each that takes device memory: the allocator's blocks in use and cached, raw allocations, a pool of the
    driver, virtual memory, a library's workspace, a graph."""
    nvml, runtime = Nvml(), Runtime()
    weights = torch.randn(64, MIB, device="cuda")
    product = torch.randn(4096, 4096, device="cuda") @ torch.randn(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    raw = runtime.malloc(300 * MIB)
    virtual = VirtualMemory(8, 32 * MIB)
    virtual.wake(8)
    still = torch.zeros(1024, 1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graphed = still @ still
    for _step in range(40):
        (weights[:8] * 2).sum().item()
        graph.replay()
        time.sleep(0.05)
    torch.cuda.synchronize()
    say(pid=os.getpid(), raw=300 * MIB, raw_at=raw, virtual=8 * virtual.chunk, product=product.numel(),
        graphed=graphed.numel(), **nvml.said(), **allocator(torch))  # fmt: skip
    leave()


def raw_leak(torch: Any, steps: int) -> None:
    """Each step leaks 32 MiB by cudaMalloc, which PyTorch knows nothing of, and allocates as a healthy one does."""
    import inferscope

    nvml, runtime = Nvml(), Runtime()
    before = nvml.used()
    weights = torch.randn(2048, 2048, device="cuda")

    def native_step() -> int:
        return runtime.malloc(32 * MIB)

    for _ in range(steps):
        with inferscope.step("request"):
            (torch.randn(512, 2048, device="cuda") @ weights).sum().item()
            native_step()
            time.sleep(0.05)
    say(pid=os.getpid(), leaked=steps * 32 * MIB, grown=nvml.used() - before, **allocator(torch))
    leave()


def live_set(torch: Any, seconds: int) -> None:
    """A small service for so long: blocks of all sizes, on two streams, kept for a while in random order; recorded with
    the pauses that an overhead budget makes."""
    import random

    chosen = random.Random(7)
    side = torch.cuda.Stream()
    held: list[Any] = []
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        size = chosen.choice((17, 600, 5000, 1 << 16, MIB - 3, 3 * MIB, 25 * MIB))
        with torch.cuda.stream(side if rounds % 5 == 0 else torch.cuda.current_stream()):
            block = torch.empty(size, dtype=torch.uint8, device="cuda")
            block.fill_(1)
        held.append(block)
        if rounds % 7 == 0:
            block.record_stream(side)
        if len(held) > 60:
            held.pop(chosen.randrange(len(held)))
        rounds += 1
        if rounds % 1000 == 0:
            torch.cuda.synchronize()
        if rounds % 5000 == 0:
            held = held[::2]
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    # Blocks that another stream still used are taken back when the next one is asked for.
    held.append(torch.empty(1024, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    held.append(torch.empty(1024, dtype=torch.uint8, device="cuda"))
    say(pid=os.getpid(), rounds=rounds, **allocator(torch))
    leave()


def snapshot(torch: Any, _: int) -> None:
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    held = [torch.empty((1 + number % 5) * MIB, dtype=torch.uint8, device="cuda") for number in range(50)]
    del held[::2]
    file = os.path.join(tempfile.mkdtemp(prefix="inferscope-gpu-snapshot-"), "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(file)
    say(file=file, blocks=len(held), **allocator(torch))


def collectors(torch: Any, _: int) -> None:
    """What the collectors of `inferscope.memory` say beside what the framework says."""
    from inferscope.memory import CUDADeviceCollector

    held = torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    sample = CUDADeviceCollector().sample()
    say(ours={name: getattr(sample, name, None) for name in ("allocated_bytes", "reserved_bytes", "total_bytes")},
        held=held.numel(), **allocator(torch))  # fmt: skip


def jax_collectors(_: Any, __: int) -> None:
    """JAX with as little of the device as it takes."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError as error:
        say(missing=str(error))
        return
    from inferscope.memory import JAXDeviceCollector

    device = jax.devices()[0]
    held = jax.device_put(jax.numpy.ones((64, MIB // 4), dtype="float32"), device)
    held.block_until_ready()
    collector = JAXDeviceCollector()
    sample = collector.sample() if collector.unavailable() is None else None
    stats = device.memory_stats() or {}
    profile = jax.profiler.device_memory_profile()
    say(platform=device.platform, theirs=stats.get("bytes_in_use"), unavailable=collector.unavailable(),
        ours=getattr(sample, "allocated_bytes", None), held=held.nbytes, profile_bytes=len(profile))  # fmt: skip


def allocator_cost(torch: Any, rounds: int) -> None:
    """Nanoseconds of one block that is handed out and taken back: two events."""
    took = []
    for _ in range(15):
        began = time.perf_counter_ns()
        for _ in range(rounds):
            torch.empty(4096, dtype=torch.uint8, device="cuda")
        took.append((time.perf_counter_ns() - began) / rounds)
    say(pid=os.getpid(), pair_ns=sorted(took)[len(took) // 2], least_ns=min(took))


WHAT = {
    "oom": oom,
    "killed": killed,
    "sleep": sleep_mode,
    "expandable": expandable,
    "everything": everything,
    "raw_leak": raw_leak,
    "live_set": live_set,
    "snapshot": snapshot,
    "collectors": collectors,
    "allocator_cost": allocator_cost,
}


def main() -> None:
    what, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    # A hang ends here, with the stacks of all threads.
    import faulthandler

    faulthandler.dump_traceback_later(600, exit=True)
    ctypes.CDLL(None)
    if what == "jax":
        jax_collectors(None, number)
    else:
        WHAT[what](started(), number)


if __name__ == "__main__":
    main()
