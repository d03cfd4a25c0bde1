"""`--retainers`: what keeps tensors is written beside the trace when a program with PyTorch ends, and only then."""

from __future__ import annotations

import json
from pathlib import Path

STAND_IN = Path(__file__).parents[1] / "python" / "stand_in_torch"
PROGRAM = f"""
import os, sys
sys.path.insert(0, {str(STAND_IN)!r})
import torch
from torch.tensors import Tensor

torch.Tensor = Tensor

class Service:
    def __init__(self):
        self.cache = []

service = Service()
for _ in range(20):
    service.cache.append(Tensor(4 << 20))
if os.fork() == 0:
    sys.exit()  # As many programs end their children, with the hooks of the parent.
os.wait()
print("served")
"""


def test_what_keeps_tensors_is_beside_the_trace_where_it_was_asked_for(record, script, trace):
    done = record(script(PROGRAM), options=("--retainers",))
    assert (done.code, done.out) == (0, b"served\n"), done.err
    (written,) = trace.glob("retainers-*.json")
    found = json.loads(written.read_text("utf-8"))
    (group,) = found["groups"]
    assert group["kept_by"] == "list in attribute cache of Service"
    assert (group["tensors"], group["bytes"], found["complete"]) == (20, 80 << 20, True)
    assert len(group["addresses"]) == 20


def test_nobody_looks_unless_asked(record, script, trace):
    assert record(script(PROGRAM)).code == 0
    assert not list(trace.glob("retainers-*"))
