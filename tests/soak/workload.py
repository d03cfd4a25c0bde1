"""Enters and leaves scopes inside one that stays open, and counts those that it has left in a file that outlives it."""

import gc
import mmap
import os
import signal
import sys
import time

from inferscope import scope

path, pace = sys.argv[1:]
# What the collector of Python's own garbage collector writes would be records that nobody counts here.
gc.disable()
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
with open(path, "r+b") as file:
    # One store for each number: `struct` would write zeros first, and a kill may come in between.
    count = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")
# A burst and a rest: 20,000 records a second. Or as fast as it goes, until there are as many as one has time to read.
burst, rest_s = 100, 0.01
fast = 0 if pace == "paced" else 150_000
left = 0
with scope("outer"):
    count[1] = os.getpid()
    while not ended:
        for _ in range(burst):
            with scope("inner"):
                pass
            left += 1
            count[0] = left
        if left >= fast:
            time.sleep(rest_s)
