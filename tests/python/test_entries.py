"""Entries on every Python, with a stand-in for PyTorch and for others: which calls are marked, what they are called,
and that the functions stay what they were."""

from __future__ import annotations

import os
import textwrap

import pytest
from conftest import PACKAGE
from layer_ranges import MODEL, PATH


@pytest.fixture
def entries(record):
    """Runs a script behind the model of stand-in modules, and gives the segment."""

    def run(script: str, before: str = "", **environment: str):
        return record(textwrap.dedent(before) + MODEL + textwrap.dedent(script), PYTHONPATH=PATH, **environment).only

    return run


def ended(segment):
    """The entries in the order of their begins; each has ended."""
    begun = {event.id: event for event in segment.of("entry-begin")}
    over = {event.id: event for event in segment.of("entry-end")}
    assert begun.keys() == over.keys()
    for number, event in begun.items():
        assert event.name == over[number].name
        assert event.time <= over[number].time
    segment.check_clean()
    return sorted(begun.values(), key=lambda event: event.id)


def names(segment):
    return [event.name for event in ended(segment)]


def test_the_outermost_call_of_a_model_is_an_entry_and_what_it_calls_is_none(entries):
    segment = entries("""
        for number in range(3):
            assert model(number) == number + 3
        model.a(1)
        model.b(x=1)
    """)
    assert names(segment) == ["model Model"] * 3 + ["model Block", "model Leaf"]


def test_the_function_stays_what_it_was(entries):
    entries("""
        import inspect, pickle, types
        call = vars(torch.nn.Module)["__call__"]
        assert type(call) is types.FunctionType
        assert torch.nn.Module.__call__ is call and model.__call__.__func__ is call
        assert inspect.signature(call).parameters and inspect.getsource(call)
        assert pickle.loads(pickle.dumps(call)) is call
        torch.nn.Module.__call__ = call
        model(1)
    """)


def test_an_exception_passes_through_and_ends_the_entry(entries):
    segment = entries("""
        import traceback
        class Fails(torch.nn.Module):
            def forward(self, x):
                raise ValueError(x)
        for _ in range(2):
            try:
                Fails()(7)
            except ValueError as error:
                assert error.args == (7,)
                names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
                assert names[0] == "<module>" and names[-1] == "forward", names
                assert not any("inferscope" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
        try:
            torch.nn.Module.__call__()
        except TypeError as error:
            assert "self" in str(error)
        model(1)
    """)
    assert names(segment) == ["model Fails", "model Fails", "model Model"]


def test_every_thread_has_its_own(entries):
    segment = entries("""
        import threading
        inside, outside = threading.Event(), threading.Event()
        class Waits(torch.nn.Module):
            def forward(self, x):
                inside.set()
                assert outside.wait(60)
        thread = threading.Thread(target=Waits(), args=(1,))
        thread.start()
        assert inside.wait(60)
        model(1)
        outside.set()
        thread.join()
    """)
    first, second = ended(segment)
    assert (first.name, second.name) == ("model Waits", "model Model")
    assert first.thread != second.thread


def test_an_entry_is_inside_the_scope_around_it(entries):
    segment = entries("""
        from inferscope import scope
        with scope("batch"):
            model(1)
        model(2)
    """)
    (batch,) = segment.of("scope-begin")
    assert [event.parent for event in ended(segment)] == [batch.id, 0]


def test_a_child_goes_on_and_ends_nothing_that_its_parent_began(record):
    done = record(
        MODEL
        + textwrap.dedent("""
            import os
            class Forks(torch.nn.Module):
                def forward(self, x):
                    return os.fork()
            child = Forks()(1)
            model(2)
            if child:
                os.waitpid(child, 0)
        """),
        PYTHONPATH=PATH,
        PYTHONWARNINGS="ignore",
    )
    assert (done.code, done.err) == (0, "")
    found = sorted([event.name for event in segments[0].of("entry-end")] for segments in done.segments.values())
    assert found == [["model Forks", "model Model"], ["model Model"]]


def test_recording_may_end_and_begin_again_in_a_call(entries):
    segment = entries("""
        import inferscope._native as native
        class Stops(torch.nn.Module):
            def forward(self, x):
                native.stop()
        Stops()(1)
        model(1)
        assert native.start("again", "3", "") is None
        model(2)
    """)
    begun = [event.name for event in segment.of("entry-begin")]
    assert begun == ["model Stops", "model Model"]
    # What began before it ended is open, as it is where a program is killed.
    assert [event.name for event in segment.of("entry-end")] == ["model Model"]


@pytest.mark.parametrize("value", ["0", "off"])
def test_off_is_off(entries, value):
    segment = entries("model(1)", INFERSCOPE_ENTRIES=value)
    assert segment.of("entry-begin", "entry-end") == []


def test_hooks_are_told_on_the_thread_and_do_no_harm(entries):
    segment = entries("""
        import inferscope._entries as entries
        told = []
        def begin(name, entry):
            told.append(("begin", name))
            assert model(5) == 8
        def end(name, entry):
            told.append(("end", name))
        def fail(name, entry):
            raise RuntimeError("of ours")
        entries.add_hooks(begin, end)
        entries.add_hooks(fail, fail)
        assert model(1) == 4
        class Fails(torch.nn.Module):
            def forward(self, x):
                raise ValueError(x)
        try:
            Fails()(1)
        except ValueError as error:
            assert error.__context__ is None
        entries.remove_hooks(begin, end)
        entries.remove_hooks(fail, fail)
        model(1)
        assert told == [(when, name) for name in ("model Model", "model Fails") for when in ("begin", "end")], told
    """)
    assert names(segment) == ["model Model", "model Fails", "model Model"]


def test_what_torch_compile_made_has_the_name_of_the_model(entries):
    segment = entries("""
        OptimizedModule = type("OptimizedModule", (torch.nn.Module,), {"forward": lambda self, x: self._orig_mod(x)})
        OptimizedModule(_orig_mod=Leaf())(1)
    """)
    assert names(segment) == ["model Leaf"]


def test_more_names_than_are_remembered(entries):
    segment = entries("""
        for number in range(1000):
            type(f"Net{number}", (Leaf,), {})()(1)
    """)
    assert names(segment) == [f"model Net{number}" for number in range(1000)]


SERVERS = {
    "wsgiref/__init__.py": "",
    "wsgiref/handlers.py": """
        class BaseHandler:
            def __init__(self, method):
                self.base_env = {"REQUEST_METHOD": method, "PATH_INFO": "/secret"}
            def run(self, application):
                return application(self.base_env, None)
    """,
    "starlette/__init__.py": "",
    "starlette/applications.py": """
        class Starlette:
            def __init__(self, handler):
                self.handler = handler
            async def __call__(self, scope, receive, send):
                return await self.handler(scope)
    """,
    "sklearn/__init__.py": "",
    "sklearn/base.py": """
        class Requester:
            def __init_subclass__(cls, **options):
                super().__init_subclass__(**options)
        class BaseEstimator(Requester):
            pass
    """,
}


@pytest.fixture
def servers(record, tmp_path):
    """Runs a script with stand-ins for servers and scikit-learn, and gives what the process left."""

    def run(script: str, **environment: str):
        for name, text in SERVERS.items():
            path = tmp_path / "stand-ins" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        path = os.pathsep.join([str(PACKAGE / "_inject"), str(tmp_path / "stand-ins"), *PATH.split(os.pathsep)[1:]])
        return record(script, PYTHONPATH=path, **environment)

    return run


def test_a_request_is_named_by_its_method_and_holds_what_it_asks(servers):
    segment = servers("""
        import torch
        from wsgiref.handlers import BaseHandler
        class Net(torch.nn.Module):
            def forward(self, x):
                return x
        def application(environ, start):
            return Net()(1), Net()(2)
        handler = BaseHandler("GET")
        assert handler.run(application) == (1, 2)
        # Handlers that are inside each other are one request.
        handler.run(lambda environ, start: BaseHandler("PUT").run(application))
        BaseHandler("/etc/passwd").run(lambda environ, start: None)
        def fails(environ, start):
            raise ValueError("no")
        try:
            BaseHandler("POST").run(fails)
        except ValueError as error:
            assert error.args == ("no",)
        BaseHandler(None).run(application)
    """).only
    found = ended(segment)
    request = ["request GET", "model Net", "model Net"]
    assert [event.name for event in found] == [*request, *request, "request OTHER", "request POST", *request[1:]]
    assert [event.parent for event in found] == [
        0, found[0].id, found[0].id, 0, found[3].id, found[3].id, 0, 0, 0, 0,
    ]  # fmt: skip


def test_a_request_lasts_over_its_awaits(servers):
    segment = servers("""
        import asyncio, inspect, torch, types, weakref
        from starlette.applications import Starlette
        class Net(torch.nn.Module):
            def forward(self, x):
                return x
        async def handler(scope):
            await asyncio.sleep(0)
            if scope["method"] == "DELETE":
                raise ValueError("no")
            Net()(1)
            await asyncio.sleep(0)
            return (1, scope["method"])
        app = Starlette(handler)
        async def main():
            call = app({"type": "http", "method": "GET"}, None, None)
            assert asyncio.iscoroutine(call) and inspect.iscoroutine(call) and isinstance(call, types.CoroutineType)
            call.__name__ = weakref.ref(call)().__name__
            assert call.cr_code.co_name == "__call__" and call.cr_await is None
            one = asyncio.ensure_future(call)
            two = asyncio.ensure_future(app({"type": "http", "method": "POST"}, None, None))
            assert await one == (1, "GET") and await two == (1, "POST")
            assert await app({"type": "http", "method": "PUT"}, None, None) == (1, "PUT")
            try:
                await app({"type": "http", "method": "DELETE"}, None, None)
            except ValueError as error:
                frame = error.__traceback__
                while frame.tb_next:
                    assert "inferscope" not in frame.tb_frame.f_code.co_filename
                    frame = frame.tb_next
            cancelled = asyncio.ensure_future(app({"type": "http", "method": "HEAD"}, None, None))
            await asyncio.sleep(0)
            cancelled.cancel()
            try:
                await cancelled
            except asyncio.CancelledError:
                pass
            async def starts(scope):
                return "started"
            assert await Starlette(starts)({"type": "lifespan"}, None, None) == "started"
        asyncio.run(main())
        closed = app({"type": "http", "method": "TRACE"}, None, None)
        closed.send(None)
        closed.close()
        by_hand = app({"type": "http", "method": "PATCH"}, None, None)
        by_hand.send(None)
        try:
            while True:
                next(by_hand) if hasattr(by_hand, "__next__") else by_hand.send(None)
        except StopIteration as stop:
            assert stop.value == (1, "PATCH")
    """).only
    found = ended(segment)
    requests = {event.id: event.name.partition(" ")[2] for event in found if event.name.startswith("request ")}
    assert sorted(requests.values()) == sorted(["GET", "POST", "PUT", "DELETE", "HEAD", "TRACE", "PATCH"])
    models = [requests[event.parent] for event in found if event.name == "model Net"]
    assert sorted(models) == ["GET", "PATCH", "POST", "PUT"]


def test_a_coroutine_that_nobody_awaits_says_so_as_ever(servers):
    done = servers(
        """
        from starlette.applications import Starlette
        Starlette(None)({"type": "http", "method": "GET"}, None, None)
        """,
        PYTHONWARNINGS="always",
    )
    assert "coroutine 'Starlette.__call__' was never awaited" in done.err
    (segments,) = done.segments.values()
    assert segments[0].of("entry-begin") == []


def test_classes_of_estimators_are_marked_as_they_are_made(servers):
    segment = servers("""
        import pickle, types
        from sklearn.base import BaseEstimator
        class Condition:
            def __init__(self, fn):
                self.fn = fn
            def __get__(self, obj, owner=None):
                return self if obj is None else types.MethodType(self.fn, obj)
        class Tree(BaseEstimator):
            def predict(self, x):
                return x
            @Condition
            def predict_proba(self, x):
                return self.predict(x)
        class Forest(Tree):
            def __init__(self):
                self.trees = [Tree(), Tree()]
            def predict(self, x):
                return [tree.predict(x) for tree in self.trees]
        forest = Forest()
        assert forest.predict(1) == [1, 1] and forest.predict(x=2) == [2, 2]
        assert forest.predict_proba(3) == [3, 3]
        ask = Tree().predict
        assert ask(4) == 4 and pickle.loads(pickle.dumps(ask))(5) == 5
        assert isinstance(Forest.predict, types.FunctionType) and Forest.predict.__name__ == "predict"
    """).only
    assert names(segment) == [*["predict Forest"] * 2, "predict_proba Forest", *["predict Tree"] * 2]


def test_nothing_of_it_is_loaded_where_no_framework_is(record):
    done = record("""
        import sys, json, decimal, email
        assert "inferscope._entries" in sys.modules
        assert not any(name.startswith("inferscope._entries.") for name in sys.modules)
    """)
    assert done.only.of("entry-begin") == []
