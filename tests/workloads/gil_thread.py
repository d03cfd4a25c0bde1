"""Planted: a second Python thread rebuilds an index all the time and holds the GIL, which the serving thread needs
again after every operation.
Fix: the index is rebuilt in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import threading

import torch
from frame import Workload, main
from parts import book, mlp

EXPECT = "gil-contention"
# Ends with the process that started it, however that ends.
ELSEWHERE = """
import os
parent = os.getppid()
while os.getppid() == parent:
    {number: [str(number), str(number * 7), "running"] for number in range(2000)}
"""


class GilThread(Workload):
    STEPS = 40

    def setup(self) -> None:
        self.model = mlp(self, width=8192, layers=4)
        self.x = torch.randn(self.size(4096, 8), self.size(8192, 64), dtype=self.dtype)
        self.stop = threading.Event()

    def refresh(self) -> None:
        while not self.stop.is_set():
            book(2000)

    def begin(self, fixed: bool) -> None:
        if fixed:
            self.process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ELSEWHERE])
            return
        self.stop.clear()
        self.thread = threading.Thread(target=self.refresh, name="refresher")
        self.thread.start()

    def end(self, fixed: bool) -> None:
        if fixed:
            self.process.kill()
            self.process.wait()
            return
        self.stop.set()
        self.thread.join()

    def planted(self) -> None:
        book(self.size(20000, 2000))
        self.model(self.x)[0, :8].tolist()

    fixed = planted


if __name__ == "__main__":
    main(GilThread)
