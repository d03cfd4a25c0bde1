"""Measures programs without InferScope: imports PyTorch once, then forks a process for each line on its input
(`name seconds device small`), which runs planted against fixed and prints what it found as one line of JSON. A fresh
process for every program, without the seconds of the import."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import traceback

from catalogue import WORKLOADS

sys.path.insert(0, str(WORKLOADS))

import frame
import torch

# A program that takes longer has hung.
MOST_SECONDS = 60


def one(name: str, seconds: float, device: str, small: bool) -> dict[str, object]:
    module = importlib.import_module(name)
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, frame.Workload) and kind.__module__ == name
    ]
    with torch.inference_mode():
        return frame.both(frame.prepared(kinds[-1], device, small), seconds)


def child(words: list[str], out: int) -> None:
    """Runs in the fork, whose standard output the program may use as it likes."""
    name, seconds, device, small = words
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = one(name, float(seconds), device, small == "small")
    except BaseException:
        found = {"gain_percent": None, "failed": traceback.format_exc(limit=-3)}
    os.write(out, (json.dumps({"program": name, **found}) + "\n").encode())


def main() -> None:
    out = os.dup(1)
    for line in sys.stdin:
        words = line.split()
        pid = os.fork()
        if pid == 0:
            # Ends this process alone.
            signal.alarm(MOST_SECONDS)
            child(words, out)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if status:
            text = f"ended with {os.waitstatus_to_exitcode(status)}"
            os.write(out, (json.dumps({"program": words[0], "gain_percent": None, "failed": text}) + "\n").encode())


if __name__ == "__main__":
    main()
