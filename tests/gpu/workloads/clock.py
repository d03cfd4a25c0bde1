"""Launches kernels that spin for a known time, one after the other, for as many seconds as it is told, and writes down
what the host saw of each: before the launch, the kernel's first and last sign of life, after the wait. Times are
CLOCK_MONOTONIC."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from driver import Driver, Flags

SPIN_NS = 20_000
# Some five hundred a second: minutes of it still make a trace that a test can read.
PAUSE_S = 0.0015


def main() -> None:
    seconds, file = float(sys.argv[1]), sys.argv[2]
    driver = Driver()
    flags = Flags(driver)
    nanos = ctypes.c_uint64(SPIN_NS)
    seen: list[tuple[int, int, int, int]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number = len(seen) + 1
        before = time.monotonic_ns()
        driver.launch("spin", flags.device, ctypes.c_uint32(number), nanos)
        began = flags.wait_for(0, number)
        ending = flags.wait_for(1, number)
        driver.wait()
        seen.append((before, began, ending, time.monotonic_ns()))
        time.sleep(PAUSE_S)
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"spin_ns": SPIN_NS, "seen": seen}, out)
    print(json.dumps({"kernels": len(seen)}), flush=True)


if __name__ == "__main__":
    main()
