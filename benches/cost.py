"""What a command costs: seconds, processor seconds and peak memory of one run or of several, and how cost grows with
size. The kernel counts, so it is the same for us and for peers."""

from __future__ import annotations

import math
import os
import signal
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

MB = 1024 * 1024


@dataclass
class Cost:
    seconds: float
    cpu_seconds: float
    peak_bytes: int

    def __str__(self) -> str:
        # Where the two differ, the machine had other things to do.
        return f"{self.seconds:.2f} s ({self.cpu_seconds:.2f} s of processor time), {self.peak_bytes / MB:.0f} MB"


@dataclass
class Failed:
    """It ended with an error or was stopped at its deadline; the memory is the most it had until then."""

    seconds: float
    peak_bytes: int
    code: int
    stopped: bool

    def __str__(self) -> str:
        how = "stopped at its deadline" if self.stopped else f"failed with exit code {self.code}"
        return f"{how} after {self.seconds:.0f} s and {self.peak_bytes / MB:.0f} MB"


def attempt(command: list[str | Path], deadline_s: float | None = None) -> Cost | Failed:
    """Runs a command with its output thrown away. Its peak memory is what the kernel counted for this
    child; that is never below our own, which is small."""
    words = [str(word) for word in command]
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    began = perf_counter()
    child = os.posix_spawn(words[0], words, os.environ, file_actions=nowhere)
    stopped = False
    if deadline_s is not None:
        # Looked at without taking it: a process number is ours until it is waited for.
        quiet = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while os.waitid(os.P_PID, child, quiet) is None:
            if perf_counter() - began > deadline_s:
                os.kill(child, signal.SIGKILL)
                stopped = True
                break
            time.sleep(0.05)
    _, status, used = os.wait4(child, 0)
    seconds, peak = perf_counter() - began, used.ru_maxrss * 1024
    if code := os.waitstatus_to_exitcode(status):
        return Failed(seconds, peak, code, stopped)
    return Cost(seconds, used.ru_utime + used.ru_stime, peak)


def once(command: list[str | Path]) -> Cost:
    """A run of ours: that it fails is the end of the benchmark."""
    cost = attempt(command)
    if isinstance(cost, Failed):
        raise SystemExit(f"{' '.join(map(str, command))} {cost}")
    return cost


def middle(costs: list[Cost]) -> Cost:
    """The median times and the largest memory."""
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        statistics.median(cost.cpu_seconds for cost in costs),
        max(cost.peak_bytes for cost in costs),
    )


def typical(command: list[str | Path], rounds: int) -> Cost:
    return middle([once(command) for _ in range(rounds)])


def exponent(points: list[tuple[int, float]]) -> float:
    """The k of the best fit of cost = c · sizeᵏ: 1 is a straight line through nothing."""
    xs, ys = [math.log(size) for size, _ in points], [math.log(cost) for _, cost in points]
    return statistics.linear_regression(xs, ys).slope
