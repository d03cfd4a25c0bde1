"""Scopes as decorators: the function stays what it was, for `inspect`, for frameworks and for pickle."""

from __future__ import annotations


def test_a_decorated_function_keeps_its_kind_and_signature(record):
    record("""
        import asyncio, inspect, pickle
        from inferscope import scope

        @scope("plain")
        def plain(a: int, *, b: str = "x") -> float:
            "What it does."
            return 1.5
        @scope("co")
        async def co(a, b=2): return a
        @scope("gen")
        def gen(n): yield n
        @scope("agen")
        async def agen(n): yield n

        assert str(inspect.signature(plain)) == "(a: int, *, b: str = 'x') -> float"
        assert (plain.__name__, plain.__doc__, plain.__module__) == ("plain", "What it does.", "__main__")
        assert inspect.isfunction(plain) and not inspect.iscoroutinefunction(plain)
        assert inspect.iscoroutinefunction(co)
        assert inspect.isgeneratorfunction(gen) and not inspect.isgeneratorfunction(plain)
        assert inspect.isasyncgenfunction(agen)
        assert pickle.loads(pickle.dumps(plain)) is plain
        assert plain(1) == 1.5 and asyncio.run(co(7)) == 7 and list(gen(3)) == [3]
    """).only.check_clean()


def test_methods_of_every_sort(record):
    segment = record("""
        from inferscope import scope
        class Model:
            @scope("method")
            def method(self): return self
            @scope("class")
            @classmethod
            def of_class(cls): return cls
            @scope("static")
            @staticmethod
            def static(): return 1
            @property
            @scope("property")
            def value(self): return 2
        model = Model()
        assert model.method() is model and Model.of_class() is Model and model.static() == 1 and model.value == 2
    """).only
    assert segment.tree() == [["method"], ["class"], ["static"], ["property"]]


def test_what_is_no_function_is_left_alone(record):
    done = record("""
        import warnings
        warnings.simplefilter("error")
        from inferscope import scope
        for thing in (int, 3):
            try: scope("x")(thing)
            except RuntimeWarning as warning: assert "not a function" in str(warning)
            else: raise AssertionError
        warnings.simplefilter("ignore")
        assert scope("x")(int) is int
    """)
    assert (done.code, done.err) == (0, "")


def test_recursion_and_exceptions(record):
    segment = record("""
        from inferscope import scope
        @scope("down")
        def down(n):
            if n == 0: raise ValueError("bottom")
            down(n - 1)
        try: down(3)
        except ValueError as error: assert str(error) == "bottom"
    """).only
    assert segment.tree() == [["down", ["down", ["down", ["down"]]]]]
    segment.check_clean()


def test_a_generator_is_open_to_its_end_and_its_caller_is_outside(record):
    segment = record("""
        from inferscope import scope, mark_event
        @scope("gen")
        def gen():
            with scope("inner"):
                mark_event("in inner")
                received = yield 1
                assert received == "sent"
                mark_event("still in inner")
                try:
                    yield 2
                except KeyError:
                    mark_event("caught")
                yield 3
            return "result"
        def driver():
            result = yield from gen()
            mark_event("result " + result)
        with scope("caller"):
            g = driver()
            assert next(g) == 1
            mark_event("outside")
        assert g.send("sent") == 2
        assert g.throw(KeyError) == 3
        assert next(g, None) is None
        h = gen(); next(h); h.close()
        mark_event("after close")
    """).only
    assert segment.tree() == [["caller", ["gen", ["inner"]]], ["gen", ["inner"]]]
    spans = segment.spans
    inside = {mark.name: spans[mark.parent].name if mark.parent else "" for mark in segment.marks}
    assert inside["in inner"] == inside["still in inner"] == inside["caught"] == "inner"
    assert (inside["outside"], inside["result result"], inside["after close"]) == ("caller", "", "")
    assert all(span.end for span in spans.values())
    segment.check_clean()


def test_asynchronous_generators(record):
    segment = record("""
        import asyncio
        from inferscope import scope, mark_event
        @scope("stream")
        async def stream(n):
            try:
                for number in range(n):
                    await asyncio.sleep(0)
                    received = yield number
                    mark_event(f"got {received}")
            finally:
                mark_event("cleaned up")
        async def main():
            assert [n async for n in stream(2)] == [0, 1]
            g = stream(3)
            assert await g.__anext__() == 0
            assert await g.asend("hello") == 1
            try: await g.athrow(ValueError("thrown"))
            except ValueError as error: assert str(error) == "thrown"
            g = stream(3)
            async for _ in g: break
            await g.aclose()
            mark_event("after")
        asyncio.run(main())
    """).only
    spans = segment.spans
    assert [span.name for span in spans.values()] == ["stream"] * 3
    assert all(span.end for span in spans.values())
    marks = {mark.name: mark.parent for mark in segment.marks}
    assert marks["got hello"] and marks["cleaned up"] and not marks["after"]
    segment.check_clean()


def test_a_generator_driven_by_its_own_task_makes_no_cycle(record):
    segment = record("""
        import asyncio
        from inferscope import scope
        @scope("agen")
        async def agen():
            tasks.append(asyncio.create_task(drive()))
            yield 1
            with scope("second"): pass
            yield 2
        async def drive():
            await asyncio.sleep(0)
            async for _ in generator: pass
        async def main():
            global generator, tasks
            tasks, generator = [], agen()
            await generator.__anext__()
            await tasks[0]
        asyncio.run(main())
    """).only
    assert segment.tree() == [["agen", ["second"]]]
    segment.check_clean()


def test_decorated_functions_travel_by_value(record):
    # As cloudpickle does it, for functions that the other side cannot import.
    segment = record("""
        import copy, pickle
        from inferscope import scope, step
        for thing in (scope("a", tags={"x": 1}), step("b")):
            again = pickle.loads(pickle.dumps(thing))
            assert repr(again) == repr(thing)
            with again: pass
            with copy.deepcopy(thing): pass
    """).only
    spans = list(segment.spans.values())
    assert [(span.name, span.step, span.tags) for span in spans] == [
        ("a", False, {"x": 1}), ("a", False, {"x": 1}), ("b", True, None), ("b", True, None),
    ]  # fmt: skip


def test_a_cycle_through_tags_is_collected(record):
    record("""
        import gc, weakref
        from inferscope import scope
        class Owner: pass
        def make():
            owner = Owner()
            owner.scope = scope("cycle", tags={"owner": owner})
            return weakref.ref(owner)
        reference = make()
        gc.collect()
        assert reference() is None
        tracked = scope("x", tags={})
        assert gc.is_tracked(tracked) and not gc.is_tracked(scope("y"))
    """).only.check_clean()
