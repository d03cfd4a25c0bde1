"""Threads that sleep and threads that compute, until the standard input ends. Says when all of them are there."""

from __future__ import annotations

import os
import sys
import threading


def rest(end: threading.Event) -> None:
    end.wait()


def compute(end: threading.Event) -> None:
    number = 0
    while not end.is_set():
        for _ in range(10_000):
            number = (number * 31 + 7) % 1_000_003


def main() -> None:
    sleeping, busy = int(sys.argv[1]), int(sys.argv[2])
    end = threading.Event()
    work = [rest] * sleeping + [compute] * busy
    threads = [threading.Thread(target=target, args=(end,), daemon=True) for target in work]
    for thread in threads:
        thread.start()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    end.set()


if __name__ == "__main__":
    main()
