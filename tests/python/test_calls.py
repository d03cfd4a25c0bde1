"""Calls: every begin has its end, whatever the program does in between."""

from __future__ import annotations

import sys

import pytest


def test_calls_nest_and_know_their_function(record):
    segment = record(
        """
        class Model:
            def forward(self): return self.layer(3)
            def layer(self, n):
                def inner(): return n
                return inner()
        def main(): return Model().forward()
        main()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    ).only
    segment.check_calls()
    segment.check_clean()
    calls = {call.function: call for call in segment.calls}
    long_names = sys.version_info >= (3, 11)
    prefix, inner = ("Model.", "Model.layer.<locals>.inner") if long_names else ("", "inner")
    assert {"main", f"{prefix}forward", f"{prefix}layer", inner, "<module>"} <= set(calls)
    name, file, line = calls["main"].name.split("\x1f")
    assert (name, file.endswith("script.py"), line) == ("main", True, "7")
    depths = [calls[f].depth for f in ("main", f"{prefix}forward", f"{prefix}layer", inner)]
    assert depths == list(range(depths[0], depths[0] + 4))
    assert segment.status["calls"].state == "on"


def test_generators_and_coroutines_are_paired(record):
    segment = record(
        """
        import asyncio
        def gen(n):
            for i in range(n):
                try: yield i
                except KeyError: yield -1
        def delegating(): return (yield from gen(3))
        async def leaf():
            await asyncio.sleep(0)
            return 1
        async def co(): return await leaf() + await leaf()
        async def agen():
            for i in range(3):
                await asyncio.sleep(0)
                yield i
        async def main():
            assert sum(await asyncio.gather(*(co() for _ in range(10)))) == 20
            assert [i async for i in agen()] == [0, 1, 2]
            async for i in agen(): break
        assert list(gen(5)) == [0, 1, 2, 3, 4]
        assert list(delegating()) == [0, 1, 2]
        g = gen(3); next(g); g.throw(KeyError); g.close()
        g = gen(3); next(g); del g
        g = gen(3); next(g)
        try: g.throw(ValueError)
        except ValueError: pass
        never_started = gen(3); del never_started
        asyncio.run(main())
    """,
        calls="1",
    ).only
    segment.check_calls()
    segment.check_clean()
    # Each time it runs on is a call: 5 items and the end, 3 and the end, and the four last generators.
    assert segment.times("gen") >= 6 + 4 + 5
    assert segment.times("co") >= 20 and segment.times("leaf") >= 20
    assert segment.open_calls == []


def test_exceptions_recursion_and_exits(record):
    segment = record(
        """
        import contextlib, sys
        def deep(n):
            if n == 0: raise ValueError
            try: deep(n - 1)
            finally: cleanup()
        def cleanup(): pass
        with contextlib.suppress(ValueError): deep(200)
        def forever(): forever()
        try: forever()
        except RecursionError: pass
        def leave(): sys.exit(3)
        def outer(): leave()
        try: outer()
        except SystemExit: pass
        def reraise():
            try: leave()
            except SystemExit as error: raise KeyError from error
        with contextlib.suppress(KeyError): reraise()
    """,
        calls="1",
    ).only
    segment.check_calls()
    segment.check_clean()
    assert segment.times("deep") == 201 and segment.times("cleanup") == 200
    assert segment.times("leave") == 2 and segment.times("forever") > 500


def test_calls_deeper_than_the_segment_reaches(record):
    segment = record(
        """
        import sys, threading
        sys.setrecursionlimit(10_000)
        threading.stack_size(512 << 20)
        def down(n): return 0 if n == 0 else 1 + down(n - 1)
        def run():
            assert down(5000) == 5000
            assert down(1500) == 1500
        thread = threading.Thread(target=run); thread.start(); thread.join()
    """,
        calls="1",
    ).only
    segment.check_calls()
    segment.check_clean()
    assert segment.times("down") == 5001 + 1501


def test_sys_exit_ends_every_call(record):
    done = record(
        """
        import sys
        def leave(): sys.exit(7)
        def main(): leave()
        main()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    )
    assert done.code == 7
    [[segment]] = done.segments.values()
    assert [call.function for call in segment.calls] == ["leave", "main", "<module>"]
    assert segment.open_calls == []


@pytest.mark.parametrize("end", ["os._exit(5)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_a_sudden_end_leaves_the_open_calls(record, end):
    done = record(
        f"""
        import os, resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        def finished(): pass
        def inner(): {end}
        def main():
            finished()
            inner()
        main()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    )
    assert done.code != 0
    [[segment]] = done.segments.values()
    assert [call.function for call in segment.calls] == ["finished"]
    assert segment.open_calls == ["<module>", "main", "inner"]


def test_threads_started_before_and_after(record):
    segment = record(
        """
        import os, threading, time, _thread
        def early(): pass
        def late(): pass
        def raw(): pass
        def spin(): pass
        def before_work():
            ready.set(); go.wait()
            for _ in range(5): early()
        ready, go = threading.Event(), threading.Event()
        old = threading.Thread(target=before_work); old.start(); ready.wait()
        os.environ["INFERSCOPE_SEGMENTS"] = os.environ["TEST_SEGMENTS"]
        import inferscope
        assert inferscope.is_recording()
        go.set(); old.join()
        def late_work():
            for _ in range(7): late()
        new = threading.Thread(target=late_work); new.start(); new.join()
        # A thread that the threading module knows nothing of.
        gate, done = _thread.allocate_lock(), _thread.allocate_lock()
        gate.acquire(); done.acquire()
        def raw_work():
            running.append(1)
            gate.acquire()
            for _ in range(9): raw()
            done.release()
        running = []
        _thread.start_new_thread(raw_work, ())
        while not running: time.sleep(0.001)
        for _ in range(2000): spin()
        gate.release(); done.acquire()
    """,
        calls="1",
        later=True,
        INFERSCOPE_CALLS_INCLUDE="script",
    ).only
    assert (segment.times("early"), segment.times("late"), segment.times("raw")) == (5, 7, 9)
    assert len({call.thread for call in segment.calls}) == 4
    assert segment.status["calls"].message == ""
    segment.check_calls()
    segment.check_clean()


def test_random_programs_keep_their_pairs(record):
    segment = record(
        """
        import random, sys
        random.seed(int(sys.argv[1]))
        counts = {}
        class Boom(Exception): pass
        def count(name): counts[name] = counts.get(name, 0) + 1
        def plain(depth):
            count("plain")
            for _ in range(random.randrange(3)): step(depth - 1)
        def raising(depth):
            count("raising")
            step(depth - 1)
            raise Boom
        def catching(depth):
            count("catching")
            try: raising(depth - 1)
            except Boom: step(depth - 1)
        def generator(depth):
            try:
                for _ in range(3):
                    step(depth - 1)
                    yield
            finally:
                plain(0)
        def using(depth):
            count("using")
            g = generator(depth - 1)
            action = random.randrange(4)
            for n, _ in enumerate(g):
                if action == 1 and n == 1: break
                if action == 2 and n == 1: g.close()
                if action == 3 and n == 1:
                    try: g.throw(Boom)
                    except Boom: pass
        def step(depth):
            if depth > 0: random.choice([plain, catching, using, lambda d: map(plain, [d])])(depth)
        for _ in range(30): step(9)
        print(counts)
    """,
        "7",
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
        INFERSCOPE_TRACE_SIZE_MB="200",
    ).only
    segment.check_calls()
    segment.check_clean()


def test_random_programs_are_counted_exactly(record):
    done = record(
        """
        import random, threading
        counts = {}
        lock = threading.Lock()
        def count(name):
            with lock: counts[name] = counts.get(name, 0) + 1
        def a(r, n):
            count("a")
            if n: (b if r.random() < .5 else c)(r, n - 1)
        def b(r, n):
            count("b")
            try: c(r, n - 1) if n else None
            finally: a(r, 0)
        def c(r, n):
            count("c")
            if n and r.random() < .3:
                try: d(r)
                except KeyError: pass
            if n: a(r, n - 1)
        def d(r):
            count("d")
            raise KeyError
        def work(seed):
            r = random.Random(seed)
            for _ in range(300): a(r, 12)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        [t.start() for t in threads]; [t.join() for t in threads]
        print(counts)
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
        INFERSCOPE_TRACE_SIZE_MB="200",
    )
    segment = done.only
    segment.check_calls()
    segment.check_clean()
    counted = eval(done.out)
    assert {name: segment.times(name) for name in counted} == counted


def test_more_functions_than_the_table_holds(record):
    segment = record(
        """
        kept = []
        for n in range(70_000):
            exec(f"def f{n}(): pass\\nf{n}()")
            kept.append(globals().pop(f"f{n}"))
    """,
        calls="1",
        INFERSCOPE_TRACE_SIZE_MB="400",
    ).only
    assert segment.status["calls"].overflow > 0
    assert segment.status["calls"].errors == segment.status["calls"].unpaired == 0
    segment.check_calls()


def test_functions_that_go_are_not_kept_alive(record):
    segment = record(
        """
        import gc, weakref
        codes, classes = [], []
        for n in range(70_000):
            code = compile("1", f"<made {n}>", "eval")
            eval(code)
            if n < 100: codes.append(weakref.ref(code))
        class Made: pass
        Made(); classes.append(weakref.ref(Made))
        del code, Made
        gc.collect()
        assert not any(reference() for reference in codes + classes)
    """,
        calls="c",
        INFERSCOPE_TRACE_SIZE_MB="400",
    ).only
    made = [call for call in segment.calls if call.file.startswith("<made ")]
    assert [call.file for call in made] == [f"<made {n}>" for n in range(70_000)]
    segment.check_calls()
    segment.check_clean()


def test_calls_while_the_interpreter_is_taken_down(record):
    segment = record(
        """
        import atexit
        class Late:
            def __del__(self): last()
        def last(): return [one() for one in (lambda: 1, lambda: 2)]
        late = Late()
        atexit.register(last)
    """,
        calls="c",
    ).only
    assert segment.times("last") >= 2
    assert segment.status["calls"].errors == 0
