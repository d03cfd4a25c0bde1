"""Thousands of threads, at a time or one after the other, and little memory: every scope is in the trace with the
default settings, within their budget."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from recording import CALL, PATIENCE_S, SCOPE, Recorded, Trace, environment, inferscope

THREADS = """
    import glob, os, sys, threading
    from inferscope import scope

    threading.stack_size(64 << 10)
    LIVE, SCOPES = int(sys.argv[1]), 10
    done, go = threading.Semaphore(0), threading.Event()

    def leaf(): pass

    def work():
        for number in range(SCOPES):
            with scope("work"): leaf()
        done.release()
        go.wait()

    threads = [threading.Thread(target=work) for _ in range(LIVE)]
    for thread in threads: thread.start()
    for _ in threads: done.acquire()
    segments = glob.glob(os.environ["INFERSCOPE_SEGMENTS"] + "/*.segment")
    print(sum(os.stat(segment).st_blocks * 512 for segment in segments))
    go.set()
    for thread in threads: thread.join()
"""


def test_five_thousand_live_threads_lose_nothing(script, record):
    # Stacks of 5,000 threads are another matter: here they would only take the machine's time.
    ours = record(sys.executable, script(THREADS), 5000, options=("--no-stacks",))
    assert ours.code == 0, ours.told
    rows = ours.trace.slices(SCOPE)
    assert len(rows) == 50_000
    assert ours.trace.lost() == 0
    # A thread's id may be used again only when it has ended, and none had.
    assert len({row["thread"] for row in rows}) == 5000
    assert all(row["dur_ns"] is not None for row in rows)
    assert int(ours.out) <= 200 << 20


def test_five_hundred_threads_with_all_their_calls(script, record):
    ours = record(sys.executable, script(THREADS), 500, options=("--no-stacks", "--calls"))
    assert ours.code == 0, ours.told
    assert len(ours.trace.slices(SCOPE)) == 5000
    assert len([row for row in ours.trace.slices(CALL) if row["text"].startswith("leaf")]) == 5000
    assert ours.trace.lost() == 0


def test_short_threads_by_the_thousand_lose_nothing(script, record):
    ours = record(
        script("""
            import threading
            from inferscope import scope

            def work():
                for number in range(3):
                    with scope("short"): pass

            for _ in range(40):
                threads = [threading.Thread(target=work) for _ in range(100)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
        """),
        options=("--no-stacks",),
    )
    assert ours.code == 0, ours.told
    assert len(ours.trace.slices(SCOPE)) == 12_000
    assert ours.trace.lost() == 0


def test_a_small_budget_is_handed_from_idle_threads_to_those_that_write(script, record, trace):
    """A megabyte has room for some 300 rings. Those of threads that wait go to others once they are on disk."""
    ours = record(
        script("""
            import glob, os, threading, time
            from inferscope import scope

            threading.stack_size(64 << 10)
            trace = os.environ["TRACE"]
            begun, second = threading.Semaphore(0), threading.Semaphore(0)

            def work(go):
                with scope("first"): pass
                begun.release()
                go.wait()
                with scope("second"): pass
                second.release()

            def newest():
                files = glob.glob(trace + "/slices.*-*.parquet")
                return max([int(file.rsplit("-", 1)[1].split(".")[0]) for file in files] or [0])

            def wait_for_a_file():
                before, end = newest(), time.monotonic() + 60
                with scope("something new"): pass
                while newest() == before and time.monotonic() < end: time.sleep(0.01)

            batches = [threading.Event() for _ in range(6)]
            for go in batches:
                threads = [threading.Thread(target=work, args=(go,)) for _ in range(150)]
                for thread in threads: thread.start()
                for _ in threads: begun.acquire()
                # The first may have been under way already; after the second the rings may forget what is in it.
                wait_for_a_file()
                wait_for_a_file()
            for go in batches:
                go.set()
                for _ in range(150): second.acquire()
                wait_for_a_file()
                wait_for_a_file()
        """),
        options=("--no-stacks", "--trace-size-mb", "1"),
        env=environment(TRACE=str(trace)),
    )
    assert ours.code == 0, ours.told
    names = ours.trace.texts(SCOPE)
    assert (names.count("first"), names.count("second"), ours.trace.lost()) == (900, 900, 0)


@pytest.mark.parametrize("limit", [200_000, 400_000])
def test_little_address_space_is_left_to_the_program(script, record, limit):
    """Under `ulimit -v` the segment is smaller, and the program gets as much memory as it does alone."""
    second = script(
        """
        from inferscope import scope
        for _ in range(1000):
            with scope("short of memory"): pass
        print("alive")
        """,
        "second.py",
    )
    path = script(f"""
        import resource
        now = int(open("/proc/self/statm").read().split()[0]) * 4096
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (now + ({limit} << 10), hard))
        import os, sys
        os.execv(sys.executable, [sys.executable, {str(second)!r}])
    """)
    ours = record(path)
    assert (ours.code, ours.out) == (0, b"alive\n"), ours.told
    assert ours.trace.texts(SCOPE).count("short of memory") == 1000
    (note,) = [note for note in ours.trace.notes if "ulimit -v" in note]
    assert "instead of 100 MiB" in note


def test_equal_notes_about_many_processes_are_one(script, record):
    path = script("""
        import os, resource
        now = int(open("/proc/self/statm").read().split()[0]) * 4096
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (now + (400 << 20), hard))
        from inferscope import scope
        for _ in range(20):
            child = os.fork()
            if child == 0:
                with scope("child"): pass
                os._exit(0)
            os.waitpid(child, 0)
    """)
    ours = record(path)
    assert ours.code == 0, ours.told
    assert ours.trace.texts(SCOPE) == ["child"] * 20
    (note,) = [note for note in ours.trace.notes if "ulimit -v" in note]
    assert "20 processes (process " in note


def test_a_file_system_of_two_megabytes_for_segments(own_mounts, script, tmp_path):
    """The collectors alone, with a place for segments that is too small for them."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    path = script("""
        import glob, os
        from inferscope import scope
        for _ in range(100_000):
            with scope("round"): pass
        (segment,) = glob.glob(os.environ["INFERSCOPE_SEGMENTS"] + "/*.segment")
        print(os.stat(segment).st_size)
    """)
    inject = subprocess.run(
        [sys.executable, "-c", "import inferscope, os; print(os.path.dirname(inferscope.__file__) + '/_inject')"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    environ = environment(INFERSCOPE_SEGMENTS=str(mounted), PYTHONPATH=inject)
    inner = f"mount -t tmpfs -o size=2m none {mounted} && exec {sys.executable} {path}"
    done = subprocess.run([*own_mounts, "sh", "-c", inner], capture_output=True, env=environ, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, b"")
    assert int(done.stdout) <= 1 << 20


def test_a_program_that_takes_the_place_of_another_keeps_what_was_open(script, record):
    """`os.execv` in the middle of a scope: the new program numbers its scopes so that none ends the old one."""
    second = script(
        """
        from inferscope import scope
        for number in range(50):
            with scope("after"): pass
        """,
        "second.py",
    )
    ours = record(
        script(f"""
            import os, sys
            from inferscope import scope
            with scope("before"): pass
            with scope("launcher", tags={{"kept": 1}}):
                with scope("inner"):
                    os.execv(sys.executable, [sys.executable, {str(second)!r}])
        """)
    )
    assert ours.code == 0, ours.told
    rows = ours.trace.slices(SCOPE)
    names = [row["text"] for row in rows]
    assert sorted(set(names)) == ["after", "before", "inner", "launcher"]
    assert names.count("after") == 50
    assert {row["text"] for row in rows if row["dur_ns"] is None} == {"inner", "launcher"}
    assert len({row["process"] for row in rows}) == 1
    assert not [note for note in ours.trace.notes if note.startswith("no scopes")]


# Until the recorder has looked around again: it closes a file of counters a second, and looks more often.
LOOKED = """
import glob, time
def newest():
    files = glob.glob({trace!r} + "/counters.*-*.parquet")
    return max([int(file.rsplit("-", 1)[1].split(".")[0]) for file in files] or [0])
first, end = newest(), time.monotonic() + 60
while newest() < first + 3 and time.monotonic() < end: pass
"""


def test_a_replaced_program_without_collectors_is_told_of(script, record, trace):
    """The process had a segment before: that says nothing about the program that came after."""
    looked = LOOKED.format(trace=str(trace))
    ours = record(
        script(f"""
            import os, sys
            from inferscope import scope
            with scope("before"): pass
            exec({looked!r})
            os.execv(sys.executable, [sys.executable, "-I", "-c", {looked!r}])
        """)
    )
    assert ours.code == 0, ours.told
    assert ours.trace.texts(SCOPE) == ["before"]
    (note,) = [note for note in ours.trace.notes if note.startswith("no scopes")]
    assert "started with -I" in note


@pytest.fixture
def readable_trace() -> Iterator[Path]:
    """A trace that any user may look at; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "trace"


def test_a_program_that_changes_its_user_is_recorded_as_far_as_it_can(script, readable_trace):
    assert os.geteuid() == 0, "only root may become another user: nothing was tested"
    looked = LOOKED.format(trace=str(readable_trace))
    done = inferscope(
        "run",
        "--output",
        readable_trace,
        "--",
        script(f"""
            # The new user may not be able to read Python's library.
            import glob, os, time
            from inferscope import scope
            with scope("as root"): pass
            os.setgid(65534); os.setuid(65534)
            for _ in range(1000):
                with scope("as nobody"): pass
            child = os.fork()
            if child == 0:
                with scope("child"): pass
                exec({looked!r})
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """),
    )
    ours = Recorded(done.returncode, done.stdout, done.stderr, Trace(readable_trace))
    assert ours.code == 0, ours.told
    names = ours.trace.texts(SCOPE)
    # What is mapped goes on: the new user needs no right to it.
    assert (names.count("as root"), names.count("as nobody"), ours.trace.lost()) == (1, 1000, 0)
    assert ours.trace.table("samples"), "root may read the stacks of any user"
    (note,) = [note for note in ours.trace.notes if note.startswith("no scopes")]
    assert "user 65534" in note
