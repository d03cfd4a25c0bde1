"""Processes that fork, daemonise, close everything, move away or end abruptly are recorded like any other."""

import os
import subprocess
import sys

import pytest
from recording import INFERSCOPE, MARK, SCOPE, Trace, alive, environment, until

pytestmark = pytest.mark.every_python


def test_a_fork_records_into_a_segment_of_its_own(script, record):
    ours = record(
        script("""
            import os
            from inferscope import scope
            with scope("parent before"): pass
            child = os.fork()
            if child == 0:
                with scope("child"): pass
                os._exit(0)
            os.waitpid(child, 0)
            with scope("parent after"): pass
        """)
    )
    assert ours.code == 0
    assert sorted(ours.trace.texts(SCOPE)) == ["child", "parent after", "parent before"]
    by_name = {row["text"]: row["process"] for row in ours.trace.slices(SCOPE)}
    assert by_name["child"] != by_name["parent after"] == by_name["parent before"]
    processes = ours.trace.manifest["processes"]
    assert processes[by_name["child"]]["parent_pid"] == processes[by_name["parent after"]]["pid"]


def test_a_fork_in_the_middle_of_a_scope_and_of_threads(script, record):
    ours = record(
        script("""
            import os, threading, time
            from inferscope import scope
            def spin(stop):
                while not stop.is_set():
                    # In and out of scopes at every fork, and no more of them the longer the forks take.
                    with scope("spinning"): time.sleep(0.0005)
            stop = threading.Event()
            threads = [threading.Thread(target=spin, args=(stop,)) for _ in range(3)]
            for t in threads: t.start()
            for _ in range(20):
                with scope("around fork"):
                    child = os.fork()
                    if child == 0:
                        with scope("in child"): pass
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
            stop.set()
            for t in threads: t.join()
        """)
    )
    assert ours.code == 0
    names = ours.trace.texts(SCOPE)
    assert names.count("in child") == 20
    assert names.count("around fork") >= 20


def test_children_are_followed(script, record, tmp_path):
    script('from inferscope import scope\nwith scope("in the child"): pass', name="child.py")
    ours = record(
        script(f"""
            import subprocess, sys
            from inferscope import scope
            with scope("in the parent"):
                subprocess.run([sys.executable, {str(tmp_path / "child.py")!r}], check=True)
        """)
    )
    assert ours.code == 0
    assert sorted(ours.trace.texts(SCOPE)) == ["in the child", "in the parent"]
    assert len([p for p in ours.trace.manifest["processes"] if p["python"]]) == 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(script, record, method):
    ours = record(
        script(f"""
            import multiprocessing
            from inferscope import scope
            def work(number):
                with scope("work"): return number * 2
            if __name__ == "__main__":
                with multiprocessing.get_context({method!r}).Pool(2) as pool:
                    print(pool.map(work, range(8)))
        """)
    )
    assert (ours.code, ours.out) == (0, b"[0, 2, 4, 6, 8, 10, 12, 14]\n")
    assert ours.trace.texts(SCOPE).count("work") == 8


def test_a_daemon_outlives_its_parent_and_is_recorded_to_its_end(script, start, tmp_path):
    """The command ends, its daemon goes on: the recorder does not wait for it, and does it no harm."""
    sign = tmp_path / "daemon.pid"
    go = tmp_path / "go"
    done = tmp_path / "done"
    recording = start(
        script(f"""
            import os, sys, time
            from inferscope import scope
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    null = os.open(os.devnull, os.O_RDWR)
                    for fd in (0, 1, 2): os.dup2(null, fd)
                    with scope("daemon begins"): pass
                    with open({str(sign) + ".new"!r}, "w") as f: f.write(str(os.getpid()))
                    os.rename({str(sign) + ".new"!r}, {str(sign)!r})
                    while not os.path.exists({str(go)!r}): time.sleep(0.01)
                    with scope("daemon ends"): pass
                    open({str(done)!r}, "w").close()
                os._exit(0)
            os.wait()
            while not os.path.exists({str(sign)!r}): time.sleep(0.01)
            print("parent ends")
        """)
    )
    ours = recording.finish()
    assert ours.code == 0
    daemon = int(sign.read_text())
    assert alive(daemon)
    assert "daemon begins" in ours.trace.texts(SCOPE)
    go.touch()
    until(done.exists, "the daemon goes on by itself")
    until(lambda: not alive(daemon), "the daemon ends by itself")


def test_a_script_that_closes_all_file_descriptors(script, record):
    ours = record(
        script("""
            import os
            from inferscope import scope
            os.closerange(0, 4096)
            for number in range(1000):
                with scope("after closing"): pass
            os.open("/dev/null", os.O_RDWR)
            os._exit(9)
        """)
    )
    assert ours.code == 9
    assert len(ours.trace.texts(SCOPE)) == 1000


def test_a_script_that_changes_directory(script, tmp_path):
    path = script("""
        import os
        from inferscope import scope
        os.chdir("/")
        with scope("elsewhere"): pass
    """)
    done = subprocess.run([INFERSCOPE, "run", path], cwd=tmp_path, capture_output=True, env=environment())
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "inferscope-traces").iterdir()
    assert Trace(folder).texts(SCOPE) == ["elsewhere"]


def test_a_relative_output_is_meant_from_where_the_command_was_typed(script, tmp_path):
    path = script("import os; os.chdir('/')")
    done = subprocess.run(
        [INFERSCOPE, "run", "--output", "here", path], cwd=tmp_path, capture_output=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert Trace(tmp_path / "here").manifest["state"] == "complete"


def test_os_exit_loses_nothing(script, record):
    ours = record(
        script("""
            import os
            from inferscope import scope, mark_event
            for number in range(5000):
                with scope("step"): pass
            mark_event("last")
            os._exit(17)
        """)
    )
    assert ours.code == 17
    assert ours.trace.texts(SCOPE) == ["step"] * 5000
    assert ours.trace.texts(MARK) == ["last"]


def test_threads_by_the_thousand(script, record):
    ours = record(
        script("""
            import threading
            from inferscope import scope
            def work():
                with scope("in thread"): pass
            for _ in range(100):
                threads = [threading.Thread(target=work) for _ in range(30)]
                for t in threads: t.start()
                for t in threads: t.join()
        """)
    )
    assert ours.code == 0
    assert ours.trace.texts(SCOPE).count("in thread") == 3000
    assert ours.trace.lost() == 0


def test_a_loop_that_never_ends_is_recorded_until_it_is_stopped(script, start):
    recording = start(script("print('ready', flush=True)\nwhile True: pass"))
    assert recording.line() == "ready"
    until(lambda: list(recording.trace.folder.glob("*.parquet")), "files are closed while it runs")
    os.kill(recording.process.pid, 15)
    ours = recording.finish()
    assert ours.code == -15
    assert ours.trace.table("samples")


def test_a_command_that_ends_before_its_child_which_holds_the_output_open(record):
    """`inferscope run` ends when its command ends, not when the last holder of stdout does."""
    ours = record("sh", "-c", "sleep 1 & echo parent", timeout=60)
    assert ours.code == 0


def test_python_dash_c(record):
    ours = record(sys.executable, "-c", "from inferscope import scope\nwith scope('inline'): pass")
    assert ours.trace.texts(SCOPE) == ["inline"]
