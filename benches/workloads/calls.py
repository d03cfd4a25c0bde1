"""Makes as many Python calls as it is told, and says at its very end what time it is (CLOCK_MONOTONIC), so that the
outside can tell how long a profiler keeps a finished program waiting."""

import sys
import time


def leaf(number):
    return number + 1


def branch(number):
    return leaf(number) + leaf(number + 1)


def main():
    calls = int(sys.argv[1])
    total = 0
    for number in range(calls // 3):
        total += branch(number)
    print(f"{total} END_NS={time.clock_gettime_ns(time.CLOCK_MONOTONIC)}", flush=True)


main()
