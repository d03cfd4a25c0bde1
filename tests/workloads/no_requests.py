"""Planted: the server is fast and the client slow: most of a turn of its loop it waits for the next request. The
load is the bottleneck, not the code.
Fix: clients that send without a pause."""

from __future__ import annotations

import queue
import threading

import torch
from frame import Workload, main
from parts import encoder, tokens

EXPECT = "no-request-waiting"


class NoRequests(Workload):
    STEPS = 50
    PAUSE = 0.012

    def setup(self) -> None:
        self.model = encoder(self)
        self.prompt = self.pinned(tokens(self).cpu())
        self.requests: queue.Queue[torch.Tensor] = queue.Queue(4)
        self.stop = threading.Event()

    def client(self, pause: float) -> None:
        while not self.stop.is_set():
            if pause:
                self.stop.wait(pause)
            try:
                self.requests.put(self.prompt, timeout=0.05)
            except queue.Full:
                continue

    def begin(self, fixed: bool) -> None:
        self.stop.clear()
        self.thread = threading.Thread(target=self.client, args=(0.0 if fixed else self.PAUSE,), name="client")
        self.thread.start()

    def end(self, fixed: bool) -> None:
        self.stop.set()
        self.thread.join()
        while not self.requests.empty():
            self.requests.get_nowait()

    def planted(self) -> None:
        prompt = self.requests.get()
        self.model(prompt.to(self.device, non_blocking=True)).argmax(-1).tolist()

    fixed = planted


if __name__ == "__main__":
    main(NoRequests)
