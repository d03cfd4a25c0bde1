"""Python lines that call native code for some milliseconds each (zlib, hashlib, sorting), a fixed amount of it, and
what that took: what native stacks are taken of."""

import hashlib
import random
import sys
import time
import zlib

order = random.Random(0)
data = order.randbytes(1 << 18)
numbers = [order.random() for _ in range(30_000)]


def compress() -> int:
    return len(zlib.compress(data, 6))


def digest() -> int:
    return hashlib.sha256(data * 4).digest()[0]


def arrange() -> float:
    return sorted(numbers)[0]


wall, processor = time.perf_counter_ns(), time.process_time_ns()
total = 0.0
for _ in range(int(sys.argv[1])):
    total += compress() + digest() + arrange()
wall, processor = time.perf_counter_ns() - wall, time.process_time_ns() - processor
print(f"WALL_NS={wall} PROCESSOR_NS={processor}", flush=True)
