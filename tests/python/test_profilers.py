"""Other profilers in the same process: theirs works, ours says what it misses, and nothing stays behind."""

from __future__ import annotations

import sys

MONITORING = sys.version_info >= (3, 12)


def test_cprofile_works_while_we_record_and_afterwards(record):
    done = record(
        """
        import cProfile, inferscope, pstats, sys
        def work(): return sum(small(n) for n in range(1000))
        def small(n): return n
        def profiled():
            profile = cProfile.Profile()
            profile.enable(); work(); profile.disable()
            return sum(row[0] for key, row in pstats.Stats(profile).stats.items() if key[2] == "small")
        work()
        assert profiled() == 1000, "while recording"
        inferscope.stop()
        assert profiled() == 1000, "after the stop"
        assert sys.getprofile() is None
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    )
    segment = done.only
    status = segment.status["calls"]
    if MONITORING:
        assert segment.times("small") == 2000 and status.unpaired == 0
    else:
        # There is one hook a thread: it went to cProfile, and the status page says so.
        assert segment.times("small") == 1000
        assert status.state == "failed" and "another profiler took the hook" in status.message
    assert status.errors == 0


def test_a_profiler_that_was_first_is_left_alone(record):
    done = record(
        """
        import os, sys
        events = []
        def theirs(frame, event, arg): events.append(event)
        if sys.version_info >= (3, 12):
            for tool in (3, 4): sys.monitoring.use_tool_id(tool, "theirs")
        else:
            sys.setprofile(theirs)
        os.environ["INFERSCOPE_SEGMENTS"] = os.environ["TEST_SEGMENTS"]
        import inferscope
        if sys.version_info >= (3, 12):
            assert sys.monitoring.get_tool(4) == sys.monitoring.get_tool(3) == "theirs"
        else:
            assert sys.getprofile() is theirs
            sys.setprofile(None)
            assert events
        with inferscope.scope("still recorded"): pass
    """,
        calls="1",
        later=True,
    )
    segment = done.only
    assert segment.status["calls"].state == "failed"
    assert "taken" in segment.status["calls"].message
    assert segment.tree() == [["still recorded"]]


def test_nothing_stays_behind_after_a_stop(record):
    done = record(
        """
        import gc, inferscope, sys, threading, time
        def waits(): go.wait(); during()
        def during(): pass
        go = threading.Event()
        thread = threading.Thread(target=waits); thread.start()
        during()
        assert len(gc.callbacks) == 1
        inferscope.stop()
        assert not inferscope.is_recording() and gc.callbacks == []
        if sys.version_info >= (3, 12):
            assert [sys.monitoring.get_tool(tool) for tool in range(6)] == [None] * 6
        assert sys.getprofile() is None and threading.getprofile() is None
        go.set(); thread.join()
        with inferscope.scope("not recorded"): during()
        inferscope.stop(); inferscope.stop()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    )
    segment = done.only
    assert segment.times("during") == 1
    assert segment.spans == {}


def test_stopping_and_starting_goes_on_in_the_same_segment(record):
    segment = record(
        """
        import inferscope
        from inferscope import scope
        def f(): pass
        def run():
            f()
            with scope("first"): pass
            for _ in range(20):
                inferscope.stop()
                with scope("unrecorded"): f()
                assert inferscope.start() and inferscope.start()
            with scope("second"): f()
        run()
        across = scope("across")
        across.__enter__(); inferscope.stop(); across.__exit__(None, None, None)
        inferscope.start()
        with scope("after"): pass
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    ).only
    assert segment.tree() == [["first"], ["second"], ["across"], ["after"]]
    assert segment.times("f") == 2
    assert segment.status["calls"].errors == 0 and segment.status["calls"].unpaired == 0


def test_a_new_recorder_after_one_that_left(record):
    done = record(
        """
        import glob, mmap, os, struct
        import inferscope
        def f(): pass
        first = os.environ["INFERSCOPE_SEGMENTS"]
        [path] = glob.glob(first + "/*.segment")
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as header:
            struct.pack_into("I", header, 36, 0)
        f()
        assert inferscope.start() and inferscope.is_recording()
        f()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    )
    assert (done.code, done.err) == (0, "")
    [segments] = done.segments.values()
    assert sorted(segment.times("f") for segment in segments) == [0, 1]
    for segment in segments:
        segment.check_clean()


def test_a_setprofile_that_puts_the_old_hook_back(record):
    segment = record(
        """
        import sys, threading
        def during(): pass
        old = sys.getprofile()
        sys.setprofile(lambda *_: None)
        during()
        sys.setprofile(old)
        def after(): pass
        for _ in range(5): after()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    ).only
    assert segment.times("after") == 5
    assert segment.status["calls"].errors == 0


def test_gc_pauses_are_recorded(record):
    segment = record("""
        import gc
        for generation in (0, 1, 2): gc.collect(generation)
    """).only
    pauses = segment.of("gc")
    # The record's number holds the generation in its lowest two bits.
    assert {pause.depth & 3 for pause in pauses} >= {0, 1, 2}
    assert all(pause.ticks <= pause.end_ticks and pause.name == "garbage collection" for pause in pauses)
    assert segment.status["gc"].state == "on"


def test_a_gc_pause_says_how_many_objects_it_freed(record):
    segment = record("""
        import gc
        gc.collect(); gc.disable()
        class Node: pass
        for _ in range(100):
            node = Node(); node.itself = node
        del node
        gc.collect()
    """).only
    # The collected ones plus one, above the generation and the four bits of what cannot be collected.
    most = max((pause.depth for pause in segment.of("gc")), key=lambda number: number >> 6)
    assert most & 3 == 2 and most >> 2 & 15 == 0 and (most >> 6) - 1 >= 100
