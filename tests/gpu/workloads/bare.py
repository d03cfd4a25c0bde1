"""A CUDA program without PyTorch and without InferScope's package: `python -I -S bare.py <what> [number]`. Prints, as
one line of JSON, what it did."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from driver import Driver, Flags, Refused


def kernels(driver: Driver, number: int) -> dict[str, object]:
    for _ in range(number):
        driver.launch("nothing")
    driver.wait()
    return {"kernels": number}


def forks(driver: Driver, number: int) -> dict[str, object]:
    """A child that is forked after CUDA was started, which CUDA does not support: it must end as without us."""
    done = kernels(driver, number)
    child = os.fork()
    if child == 0:
        os._exit(7)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return kernels(driver, number) | {"kernels": 2 * number, "child": code, "before": done["kernels"]}


def resets(driver: Driver, number: int) -> dict[str, object]:
    """cudaDeviceReset is cuDevicePrimaryCtxReset; a new context follows."""
    kernels(driver, number)
    driver("cuDevicePrimaryCtxReset_v2", driver.device)
    driver.context()
    return kernels(driver, number) | {"kernels": 2 * number}


def for_a_while(driver: Driver) -> None:
    """More kernels: CUPTI hands the first ones over meanwhile."""
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        driver.launch("nothing")


def exits(driver: Driver, number: int) -> dict[str, object]:
    """Leaves by os._exit while a kernel is running."""
    done = kernels(driver, number)
    for_a_while(driver)
    flags = Flags(driver)
    driver.launch("spin", flags.device, ctypes.c_uint32(1), ctypes.c_uint64(2_000_000_000))
    flags.wait_for(0, 1)
    print(json.dumps(done), flush=True)
    os._exit(9)


def killed(driver: Driver, number: int) -> dict[str, object]:
    """Is killed between two kernels, some time after the first ones."""
    done = kernels(driver, number)
    print(json.dumps(done), flush=True)
    for_a_while(driver)
    os.kill(os.getpid(), signal.SIGKILL)
    return done


def main() -> None:
    what, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    try:
        done = {work.__name__: work for work in (kernels, forks, resets, exits, killed)}[what](Driver(), number)
    except (Refused, OSError) as error:
        raise SystemExit(f"bare.py: {error}") from error
    print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
