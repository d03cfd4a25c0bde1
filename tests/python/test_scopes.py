"""`scope`, `step` and `mark_event` as the program sees them and as they are recorded."""

from __future__ import annotations

import pytest


def test_scopes_nest_and_marks_know_where_they_are(record):
    segment = record("""
        from inferscope import scope, mark_event
        with scope("outer", tags={"model": "gpt2"}):
            with scope("inner"):
                mark_event("cache_miss", metadata={"key": 3})
            with scope("inner"):
                pass
        mark_event("outside")
    """).only
    assert segment.tree() == [["outer", ["inner"], ["inner"]]]
    outer, first, second = segment.spans.values()
    assert outer.begin <= first.begin <= first.end <= second.begin <= second.end <= outer.end
    assert outer.tags == {"model": "gpt2"}
    inside, outside = segment.marks
    assert (inside.name, inside.tags, inside.parent) == ("cache_miss", {"key": 3}, first.id)
    assert (outside.name, outside.tags, outside.parent) == ("outside", None, 0)
    assert segment.status["scopes"].state == "on"
    segment.check_clean()


def test_the_program_is_named_without_its_arguments(record):
    segment = record("import inferscope", "--token", "secret").only
    assert segment.program.split(" ", 1)[1] == "script.py"
    assert segment.python.startswith("3.")


def test_exceptions_pass_through_and_end_scopes(record):
    segment = record("""
        from inferscope import scope
        error = KeyError("mine")
        try:
            with scope("outer"):
                with scope("inner"):
                    raise error
        except KeyError as caught:
            assert caught is error
            assert caught.__context__ is None and caught.__cause__ is None
        with scope("after"):
            pass
    """).only
    assert segment.tree() == [["outer", ["inner"]], ["after"]]
    assert all(span.end for span in segment.spans.values())


def test_one_object_serves_recursion_and_threads(record):
    segment = record("""
        import threading
        from inferscope import scope
        shared = scope("shared")
        def down(n):
            with shared:
                if n: down(n - 1)
        down(2)
        inside = threading.Barrier(3)
        def work():
            with shared:
                inside.wait()
                with scope("own"):
                    inside.wait()
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]; [t.join() for t in threads]
    """).only
    assert segment.tree()[0] == ["shared", ["shared", ["shared"]]]
    assert segment.tree()[1:] == [["shared", ["own"]]] * 3
    assert len({span.thread for span in segment.spans.values()}) == 4
    segment.check_clean()


def test_every_asyncio_task_has_its_own_nesting(record):
    segment = record("""
        import asyncio
        from inferscope import scope, mark_event
        async def leaf(n):
            with scope(f"leaf {n}"):
                await asyncio.sleep(0)
                mark_event("in leaf")
        @scope("task")
        async def task(n):
            await asyncio.sleep(0)
            await leaf(n)
        async def main():
            with scope("main"):
                await asyncio.gather(*(task(n) for n in range(20)))
        asyncio.run(main())
    """).only
    [main] = segment.tree()
    assert main[0] == "main"
    assert sorted(map(str, main[1:])) == sorted(str(["task", [f"leaf {n}"]]) for n in range(20))
    leaves = {span.id for span in segment.spans.values() if span.name.startswith("leaf")}
    assert {mark.parent for mark in segment.marks} == leaves
    segment.check_clean()


def test_a_task_that_outlives_its_scope_is_not_inside_it(record):
    segment = record("""
        import asyncio
        from inferscope import scope
        async def late():
            await asyncio.sleep(0.01)
            with scope("late"): pass
        async def main():
            with scope("gone"):
                task = asyncio.create_task(late())
            await task
        asyncio.run(main())
    """).only
    assert segment.tree() == [["gone"], ["late"]]


def test_work_handed_to_a_thread_stays_inside(record):
    segment = record("""
        import asyncio
        from inferscope import scope
        def blocking():
            with scope("blocking"): pass
        async def main():
            with scope("request"):
                await asyncio.to_thread(blocking)
        asyncio.run(main())
    """).only
    assert segment.tree() == [["request", ["blocking"]]]


def test_exits_in_any_order_survive(record):
    segment = record("""
        from inferscope import scope
        a, b, c = scope("a"), scope("b"), scope("c")
        for first, second, third in [(a, b, c), (b, c, a), (c, a, b)]:
            a.__enter__(); b.__enter__(); c.__enter__()
            for each in (first, second, third):
                each.__exit__(None, None, None)
        with scope("after"): pass
        a.__exit__(None, None, None)      # once too often
    """).only
    assert segment.tree() == [["a", ["b", ["c"]]]] * 3 + [["after"]]
    assert all(span.end for span in segment.spans.values())
    segment.check_clean()


def test_a_scope_left_in_another_context_or_thread_ends(record):
    segment = record("""
        import contextvars, threading
        from inferscope import scope
        one = scope("one")
        contextvars.copy_context().run(one.__enter__)
        contextvars.copy_context().run(one.__exit__, None, None, None)
        two = scope("two")
        thread = threading.Thread(target=two.__enter__); thread.start(); thread.join()
        two.__exit__(None, None, None)
        with scope("after"): pass
    """).only
    assert segment.tree() == [["one"], ["two"], ["after"]]
    assert all(span.end for span in segment.spans.values())
    segment.check_clean()


def test_works_with_exit_stack_and_by_hand(record):
    segment = record("""
        import contextlib
        from inferscope import scope
        with contextlib.ExitStack() as stack:
            assert stack.enter_context(scope("in stack"))
            stack.enter_context(scope("deeper"))
        s = scope("by hand")
        assert s.__enter__() is s
        assert s.__exit__(None, None, None) is None
        assert isinstance(s, contextlib.AbstractContextManager)
        assert type(s).__enter__(s) is s and type(s).__exit__(s, None, None, None) is None
        with scope("as") as name:
            assert repr(name) == "scope('as')"
    """).only
    assert segment.tree() == [["in stack", ["deeper"]], ["by hand"], ["by hand"], ["as"]]


def test_a_scope_that_nobody_can_leave_any_more_ends(record):
    segment = record("""
        from inferscope import scope
        scope("left open").__enter__()
        with scope("after"): pass
    """).only
    assert segment.tree() == [["left open"], ["after"]]
    assert all(span.end for span in segment.spans.values())


@pytest.mark.one_python
def test_a_hundred_thousand_nested_scopes(record):
    segment = record("""
        import contextlib
        from inferscope import scope
        def nest():
            with contextlib.ExitStack() as stack:
                for _ in range(100_000):
                    stack.enter_context(scope("level"))
        nest()
        # And left open altogether, so that the whole chain is let go at once.
        import contextvars
        def enter():
            global keep
            keep = [scope("level") for _ in range(100_000)]
            for level in keep:
                level.__enter__()
        contextvars.copy_context().run(enter)
        print("alive")
    """)
    assert (record_out := segment.out) == "alive\n", record_out
    assert segment.code == 0


def test_steps_of_a_loop(record):
    segment = record("""
        from inferscope import scope, step
        def numbers():
            for n in range(3):
                with scope("fetch"): pass
                yield n
        seen = []
        for n in step(numbers(), name="request"):
            with scope("work"): seen.append(n)
        assert seen == [0, 1, 2]
        assert len(step([1, 2, 3], name="x")) == 3
        with step("by hand", tags={"n": 1}): pass
        with step(name="named"): pass
        for _ in step(range(2)): pass
    """).only
    fetch, request = ["fetch"], ["request", ["work"]]
    assert segment.tree() == [
        fetch, request, fetch, request, fetch, request, ["by hand"], ["named"], ["step"], ["step"],
    ]  # fmt: skip
    assert [span.name for span in segment.spans.values() if span.step].count("request") == 3
    assert next(span for span in segment.spans.values() if span.name == "by hand").tags == {"n": 1}
    segment.check_clean()


def test_leaving_a_loop_ends_its_step(record):
    segment = record("""
        import asyncio
        from inferscope import mark_event, step
        for n in step(range(5), name="broken"):
            if n == 1: break
        mark_event("after break")
        try:
            for n in step(range(5), name="raised"):
                raise ValueError
        except ValueError:
            pass
        mark_event("after raise")
        class Numbers:
            def __init__(self): self.n = 0
            def __aiter__(self): return self
            async def __anext__(self):
                self.n += 1
                await asyncio.sleep(0)
                if self.n > 3: raise StopAsyncIteration
                return self.n
        async def main():
            async for n in step(Numbers(), name="async"):
                mark_event("in async")
            async for n in step(Numbers(), name="async broken"):
                break
            mark_event("after async")
        asyncio.run(main())
    """).only
    spans = segment.spans.values()
    assert [span.name for span in spans] == ["broken"] * 2 + ["raised"] + ["async"] * 3 + ["async broken"]
    assert all(span.end for span in spans)
    parents = {mark.name: mark.parent for mark in segment.marks}
    assert parents["after break"] == parents["after raise"] == parents["after async"] == 0
    assert parents["in async"] != 0


def test_a_second_import_of_the_package_goes_on(record):
    segment = record(
        """
        import sys
        import inferscope
        from inferscope import scope
        old = scope("old")
        def again():
            for name in [name for name in sys.modules if name.startswith("inferscope")]: del sys.modules[name]
            import inferscope
            return inferscope
        with scope("first"):
            new = again()
            assert new is not inferscope and new.is_recording()
            with new.scope("second"), old: pass
        assert isinstance(old, new.Scope)
    """,
        inject=False,
    ).only
    assert segment.tree() == [["first", ["second", ["old"]]]]
    segment.check_clean()
