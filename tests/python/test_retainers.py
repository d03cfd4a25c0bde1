"""What keeps tensors, found in the heap: each way to keep one, nothing of the program called, within its limits."""

from __future__ import annotations

import collections
import functools
import gc
import importlib.util
import json
import re
import sys
import types
import weakref
from pathlib import Path

import pytest
from inferscope import memory
from inferscope.memory import _retainers

MIB = 1 << 20
STAND_IN = Path(__file__).parent / "stand_in_torch" / "torch" / "tensors.py"


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    spec = importlib.util.spec_from_file_location("stand_in_tensors", STAND_IN)
    tensors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tensors)
    module = types.ModuleType("torch")
    module.Tensor = tensors.Tensor
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def plain(name):
    """Without where a function or class is defined, which old Pythons do not tell of functions."""
    return re.sub(r"[\w.]+\.<locals>\.", "", name)


def kept_by():
    found = memory.retainers(seconds=60)
    assert found.complete
    return {group.kept_by: group for group in found.groups}


def only():
    found = kept_by()
    assert len(found) == 1, list(found)
    return next(iter(found.values()))


def line(function):
    return f"({Path(__file__).name}:{function.__code__.co_firstlineno})"


class Service:
    def __init__(self):
        self.cache = {}


class Slotted:
    __slots__ = ("kept",)


def test_a_list_in_a_closure_is_named_with_its_function(torch):
    def build():
        results = []

        def handle():
            results.append(torch.Tensor(MIB))

        return handle

    handle = build()
    for _ in range(5):
        handle()
    group = only()
    assert plain(group.kept_by) == f"list in closure variable results of handle {line(handle)}"
    assert (group.tensors, group.bytes, group.largest_bytes, group.device) == (5, 5 * MIB, MIB, "cpu")
    assert (group.line, Path(group.file).name) == (handle.__code__.co_firstlineno, Path(__file__).name)
    assert len(group.addresses) == 5


def test_a_tensor_right_in_a_closure(torch):
    def build():
        kept = torch.Tensor(MIB)
        return lambda: kept

    keep = build()
    assert only().kept_by.startswith("closure variable kept of "), only()
    assert keep


def test_attributes_of_instances_with_and_without_slots(torch):
    service, slotted = Service(), Slotted()
    service.cache["secret-user"] = [torch.Tensor(3 * MIB)]
    service.last = torch.Tensor(2 * MIB)
    slotted.kept = torch.Tensor(MIB)
    assert list(kept_by()) == [
        "list in dict in attribute cache of Service",
        "attribute last of Service",
        "attribute kept of Slotted",
    ]


def test_globals_class_attributes_defaults_and_caches(torch, monkeypatch):
    module = types.ModuleType("serve")
    module.results = collections.deque([torch.Tensor(5 * MIB)])
    monkeypatch.setitem(sys.modules, "serve", module)

    class Model:
        shared = torch.Tensor(4 * MIB)

    def forward(mask=torch.Tensor(3 * MIB)):  # noqa: B008
        return mask

    @functools.cache
    def embed(key):
        return torch.Tensor(2 * MIB)

    embed(1)
    assert [plain(name) for name in kept_by()] == [
        "deque in global results of serve",
        "class attribute shared of Model",
        f"default argument of forward {line(forward)}",
        f"functools cache of embed {line(embed.__wrapped__)}",
    ]
    assert Model and forward


def test_variables_of_what_runs(torch):
    def producer():
        batch = torch.Tensor(2 * MIB)
        yield
        del batch

    waiting = producer()
    next(waiting)
    here = torch.Tensor(MIB)
    names = list(kept_by())
    assert plain(names[0]) == f"local variable of producer {line(producer)}"
    running = f"local variable of test_variables_of_what_runs {line(test_variables_of_what_runs)}"
    assert names[1] == running if sys.version_info >= (3, 13) else names[1].startswith("nothing that was found")
    assert here and waiting


def test_views_count_once_and_unreachable_cycles_go_when_asked(torch):
    service = Service()
    service.base = torch.Tensor(MIB)
    service.views = [service.base.view() for _ in range(7)]
    found = memory.retainers(seconds=60)
    assert (found.tensors, found.bytes) == (1, MIB)
    cycle = Service()
    cycle.me, cycle.tensor = cycle, torch.Tensor(9 * MIB)
    gc.disable()
    try:
        del cycle
        assert memory.retainers(seconds=60).bytes == 10 * MIB
        assert memory.retainers(seconds=60, collect=True).bytes == MIB
    finally:
        gc.enable()


def test_nothing_of_the_program_is_called(torch):
    called = []

    def tell(*arguments):
        called.append(arguments[1:])
        raise SystemExit("called")

    class Meta(type):
        __getattribute__ = tell
        __eq__ = tell
        __hash__ = type.__hash__
        __instancecheck__ = tell
        __subclasscheck__ = tell

    Hostile = type.__call__(
        Meta,
        "Hostile",
        (),
        {
            "__getattribute__": tell, "__getattr__": tell, "__eq__": tell, "__hash__": object.__hash__,
            "__bool__": tell, "__len__": tell, "__iter__": tell, "__repr__": tell, "__class__": property(tell),
        },
    )  # fmt: skip

    class Lying:
        __dict__ = property(tell)
        __slots__ = ("kept",)

    hostile, lying = object.__new__(Hostile), object.__new__(Lying)
    object.__setattr__(hostile, "kept", torch.Tensor(2 * MIB))
    lying.kept = torch.Tensor(MIB)
    names = [plain(name) for name in kept_by()]
    assert names == ["attribute kept of Hostile", "attribute kept of Lying"]
    assert called == []


def test_nothing_is_kept_or_changed(torch):
    service = Service()
    service.cache["one"] = torch.Tensor(MIB)
    alive = weakref.ref(service.cache["one"])
    collections_before = gc.get_stats()[2]["collections"]
    counts = sys.getrefcount(service), sys.getrefcount(service.cache)
    memory.retainers(seconds=60)
    assert (sys.getrefcount(service), sys.getrefcount(service.cache)) == counts
    assert gc.get_stats()[2]["collections"] <= collections_before + 1
    service.cache.clear()
    assert alive() is None


def test_time_and_number_are_limited(torch):
    service = Service()
    service.kept = [torch.Tensor(size * MIB) for size in range(1, 100)]
    late = memory.retainers(seconds=0)
    assert not late.complete and "time was up" in str(late)
    few = memory.retainers(seconds=60, most=3)
    assert (few.tensors, few.looked_at, few.groups[0].bytes) == (99, 3, (99 + 98 + 97) * MIB)


def test_without_pytorch_there_is_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert memory.retainers().groups == ()
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=3))
    assert memory.retainers().groups == ()


def test_they_are_written_beside_the_trace(torch, tmp_path, monkeypatch):
    service = Service()
    service.kept = torch.Tensor(MIB)
    monkeypatch.setenv("INFERSCOPE_TRACE", str(tmp_path))
    _retainers.write_at_exit()
    (written,) = tmp_path.iterdir()
    found = json.loads(written.read_text("utf-8"))
    assert written.name == f"retainers-{found['pid']}.json"
    assert found["groups"][0]["kept_by"] == "attribute kept of Service"
    assert (found["schema_version"], found["groups"][0]["bytes"]) == (1, MIB)


def test_a_folder_that_is_gone_is_said_and_no_more(torch, monkeypatch, capsys):
    monkeypatch.setenv("INFERSCOPE_TRACE", "/nowhere/trace")
    _retainers.write_at_exit()
    assert "could not be found" in capsys.readouterr().err
