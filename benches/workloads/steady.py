"""A fixed amount of pure-Python work, some frames deep; prints what it took, in wall and in processor nanoseconds.
It takes no time from outside, so a profiler's start and end do not count, only how much it slows the work down."""

import sys
import time


def parse(line):
    key, _, value = line.partition("=")
    return key.strip(), value.strip().upper()


def batch(lines):
    found = {}
    for line in lines:
        key, value = parse(line)
        found[key] = found.get(key, 0) + len(value)
    return found


def nested(depth, lines):
    if depth:
        return nested(depth - 1, lines)
    return batch(lines)


def main():
    rounds = int(sys.argv[1])
    lines = [f"key{number % 97} = value {number}" for number in range(1000)]
    nested(20, lines)
    wall, processor = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(rounds):
        nested(20, lines)
    wall, processor = time.perf_counter_ns() - wall, time.process_time_ns() - processor
    print(f"WALL_NS={wall} PROCESSOR_NS={processor}", flush=True)


main()
