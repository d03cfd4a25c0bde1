"""A model of modules for tests of `INFERSCOPE_LAYERS=1` with a stand-in for PyTorch, and the ranges that its calls
leave in a segment. No test is here."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from conftest import PACKAGE

STAND_IN = Path(__file__).with_name("stand_in_torch")
PATH = os.pathsep.join([str(PACKAGE / "_inject"), str(STAND_IN)])

MODEL = """
import sys
import torch
from torch.nn.modules import module as hooks

class Leaf(torch.nn.Module):
    def forward(self, x):
        return x + 1

class Model(torch.nn.Module):
    def forward(self, x):
        return self.b(self.a(x))

class Block(Model):
    pass

model = Model(a=Block(a=Leaf(), b=Leaf()), b=Leaf())

def watched():
    if hooks._global_forward_hooks or hooks._global_forward_pre_hooks:
        return True
    monitoring = getattr(sys, "monitoring", None)
    code = torch.nn.Module.__call__.__code__
    return bool(monitoring) and any(
        monitoring.get_local_events(tool, code) for tool in range(6) if monitoring.get_tool(tool)
    )
"""
CALL = ["Model", "a", "a.a", "a.b", "b"]


@pytest.fixture
def layers(record):
    """Runs a script behind the model above, and gives the segment."""

    def run(script: str, before: str = "", **environment: str):
        environment.setdefault("INFERSCOPE_LAYERS", "1")
        text = textwrap.dedent(before) + MODEL + textwrap.dedent(script)
        return record(text, PYTHONPATH=PATH, **environment).only

    return run


def names(segment):
    """The ranges in the order of their begins; each has ended, inside the one around it."""
    begun = {event.id: event for event in segment.of("layer-begin")}
    ended = {event.id: event for event in segment.of("layer-end")}
    assert begun.keys() == ended.keys()
    for number, event in begun.items():
        assert event.name == ended[number].name
        assert event.time <= ended[number].time
        if event.parent:
            assert begun[event.parent].time <= event.time
            assert ended[number].time <= ended[event.parent].time
    return [event.name for event in sorted(begun.values(), key=lambda event: event.id)]
