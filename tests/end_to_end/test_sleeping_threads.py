"""Programs with many threads: the stacks of those that sleep are used again, those of the others are read, and both are
right."""

import re
from collections import Counter, defaultdict

import pytest

# Alone: it measures how often threads that sleep are looked at.
pytestmark = [pytest.mark.every_python, pytest.mark.serial]

ACTIVE, GIL = 1, 2

# A pool that sleeps in two places, a thread that computes in two functions for known shares of its processor time, and
# one that sleeps and computes by turns.
PROGRAM = """
    import threading, time

    done, started = threading.Event(), threading.Barrier(POOL + 3)

    def rest(gate):
        started.wait()
        gate()                                             # RESTS

    def sleeper_of_one_kind():
        rest(done.wait)                                    # ONE KIND

    def sleeper_of_another():
        rest(lambda: done.wait())                          # ANOTHER

    def turn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:                    # TURNS
            pass

    def long_part(): turn(0.03)
    def short_part(): turn(0.01)

    def busy():
        started.wait()
        for _ in range(50):
            long_part()                                    # LONG
            short_part()                                   # SHORT
        done.set()

    def now_and_then():
        started.wait()
        while not done.is_set():
            turn(0.002)                                    # NOW
            time.sleep(0.02)                               # THEN

    kinds = sleeper_of_one_kind, sleeper_of_another
    pool = [threading.Thread(target=kinds[i % 2], name=f"pool {i}") for i in range(POOL)]
    others = [threading.Thread(target=busy, name="busy"), threading.Thread(target=now_and_then, name="now and then")]
    for thread in pool + others: thread.start()
    started.wait()
    for thread in pool + others: thread.join()             # JOINS
"""
POOL = 60


def stacks(trace):
    """Of each stack: (function, line) from the innermost frame of Python out. Python 3.10 has no qualified names."""
    names, rows = trace.names(), {row["id"]: row for row in trace.table("stacks")}
    native = {row["id"] for row in trace.table("names") if not (row["file"] or "").endswith((".py", ">"))}

    def frames(stack):
        while stack:
            row = rows[stack]
            if row["name"] not in native:
                yield names[row["name"]].rsplit(".", 1)[-1], row["line"]
            stack = row["parent"]

    return {stack: list(frames(stack)) for stack in rows}


def test_sleeping_and_busy_threads_have_their_stacks(script, record):
    path = script(PROGRAM.replace("POOL", str(POOL)))
    text = path.read_text().splitlines()
    line = {words: number for number, words in enumerate(text, 1) for words in re.findall(r"# ([A-Z ]+)$", words)}
    ours = record(path)
    assert ours.code == 0, ours.told
    frames = stacks(ours.trace)
    threads = {row["thread"]: row["name"] for row in ours.trace.table("threads")}
    # Samples of the time in which all threads are where they should be: the pool rests, and `busy` has something to do.
    moments = defaultdict(dict)
    for row in ours.trace.table("samples"):
        moments[row["time_ns"]][threads[row["thread"]]] = (frames[row["stack"]], row["state"])
    names = {f"pool {number}" for number in range(POOL)} | {"MainThread", "busy", "now and then"}
    leaf = ("rest", line["RESTS"])
    whole = [
        moment
        for moment in moments.values()
        if any(frame in (("busy", line["LONG"]), ("busy", line["SHORT"])) for frame in moment.get("busy", ([],))[0])
        and all(leaf in moment[name][0] for name in moment if name.startswith("pool"))
    ]
    assert len(whole) >= 20, len(moments)
    places = Counter()
    for moment in whole:
        # No thread is missing, unless its stack changed while it was read.
        missing = names - set(moment)
        assert missing <= {"busy", "now and then"}, missing
        for number in range(POOL):
            found, state = moment[f"pool {number}"]
            kind = (
                ("sleeper_of_one_kind", line["ONE KIND"])
                if number % 2 == 0
                else ("sleeper_of_another", line["ANOTHER"])
            )
            assert kind in found, found
            assert not state & ACTIVE
        assert any(place[1] == line["JOINS"] for place in moment["MainThread"][0])
        busy, state = moment["busy"]
        places[next(place for place in busy if place[0] == "busy")[1]] += 1
        places["active"] += state & ACTIVE
        if "now and then" in moment:
            places["now"] += ("now_and_then", line["NOW"]) in moment["now and then"][0]
            places["then"] += ("now_and_then", line["THEN"]) in moment["now and then"][0]
    # Three quarters of its time; the bounds are five standard deviations of so many samples, and some for the machine.
    count = places[line["LONG"]] + places[line["SHORT"]]
    deviation = 5 * (0.75 * 0.25 / count) ** 0.5
    assert abs(places[line["LONG"]] / count - 0.75) <= deviation + 0.05, places
    # It waits for the GIL now and then, which is not active.
    assert places["active"] >= count / 2, places
    assert places["now"] and places["then"], places
    # Most stacks were used again.
    (reads,) = [
        collector["stack_reads"]
        for process in ours.trace.manifest["processes"]
        for collector in process["collectors"]
        if collector.get("stack_reads", {}).get("read")
    ]
    sampled = sum(len(moment) for moment in whole)
    assert reads["reused"] >= sampled * 0.8, (reads, sampled)
    assert not any("differ" in note for note in ours.trace.notes)


def test_threads_that_come_and_go_are_seen(script, record):
    """Each lives for some samples only, and takes the place of one before it."""
    ours = record(
        script("""
            import threading, time

            def short_lived():
                end = time.thread_time() + 0.05
                while time.thread_time() < end: pass

            for number in range(20):
                threads = [threading.Thread(target=short_lived, name=f"round {number}") for _ in range(2)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
        """)
    )
    assert ours.code == 0, ours.told
    frames = stacks(ours.trace)
    named = {row["thread"]: row["name"] for row in ours.trace.table("threads")}
    seen = {
        row["thread"]
        for row in ours.trace.table("samples")
        if any(function == "short_lived" for function, _ in frames[row["stack"]])
    }
    assert len(seen) >= 20, seen
    assert sum(named.get(thread, "").startswith("round") for thread in seen) >= 20, named
