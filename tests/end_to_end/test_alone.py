"""No `inferscope run` around it: the package starts the recorder itself, and the report is there however the process
ends."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from recording import PATIENCE_S, SCOPE, STEP, Trace, environment, until

pytestmark = pytest.mark.every_python

ENDINGS = {
    "by itself": ("", 0),
    "by an exception": ("raise ValueError('planted')", 1),
    "by sys.exit": ("import sys; sys.exit(3)", 3),
    "by os._exit": ("import os; os._exit(4)", 4),
    "by SIGTERM": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "by SIGKILL": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "by SIGINT": ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
}


def the_report(folder: Path) -> Trace:
    until((folder / "report.md").exists, "the report is written")
    return Trace(folder)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("way", ["environment", "start"])
def test_the_report_is_there_however_the_process_ends(script, tmp_path, ending, way):
    last, code = ENDINGS[ending]
    begin = "inferscope.start()" if way == "start" else ""
    path = script(
        f"""
        import inferscope
        from inferscope import scope
        {begin}
        for _ in range(1000):
            with scope("work"): pass
        {last}
        """
    )
    folder = tmp_path / "trace"
    extra = {"INFERSCOPE_OUTPUT": str(folder)} | ({"INFERSCOPE_ENABLE": "1"} if way == "environment" else {})
    done = subprocess.run([sys.executable, path], capture_output=True, env=environment(**extra), timeout=PATIENCE_S)
    assert done.returncode == code, done.stderr.decode()
    trace = the_report(folder)
    assert trace.texts(SCOPE) == ["work"] * 1000
    assert trace.manifest["state"] == "complete"


def test_start_stop_and_where_the_report_is(script, tmp_path):
    path = script("""
        import inferscope
        from inferscope import scope, step
        with scope("before"): pass
        inferscope.start(output="here")
        for _ in step(range(3), name="request"):
            with scope("during"): pass
        inferscope.stop()
        with scope("after"): pass
        print(inferscope.report_path())
    """)
    done = subprocess.run(
        [sys.executable, path], capture_output=True, env=environment(), cwd=tmp_path, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr.decode()
    report = Path(done.stdout.decode().strip())
    assert report.exists(), "after stop() the report can be read"
    trace = Trace(report.parent)
    assert trace.folder.resolve() == (tmp_path / "here").resolve()
    assert trace.texts(SCOPE) == ["during"] * 3
    assert trace.texts(STEP) == ["request"] * 3


def test_disabled_it_does_nothing_at_all(script, tmp_path):
    path = script("""
        import os, threading
        import inferscope
        from inferscope import scope, step, mark_event
        with scope("x", tags={"a": 1}): mark_event("y")
        assert list(step([1, 2], name="z")) == [1, 2]
        inferscope.stop()
        mapped = [line for line in open("/proc/self/maps") if ".segment" in line]
        print(inferscope.report_path(), threading.active_count(), mapped)
    """)
    done = subprocess.run([sys.executable, path], capture_output=True, env=environment(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"None 1 []\n"), done.stderr.decode()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["script.py"]


def test_enabled_inside_a_run_there_is_one_recorder_not_two(script, record):
    path = script("""
        import inferscope
        inferscope.start()
        with inferscope.scope("x"): pass
        inferscope.stop()
    """)
    ours = record(path, env=environment(INFERSCOPE_ENABLE="1"))
    assert ours.code == 0, ours.told
    assert ours.trace.texts(SCOPE) == ["x"]
    folders = [p for p in ours.trace.folder.parent.iterdir() if (p / "manifest.json").exists()]
    assert folders == [ours.trace.folder]


def test_the_recorder_cannot_start_and_the_program_goes_on(script, tmp_path):
    path = script("import inferscope\nfrom inferscope import scope\nwith scope('x'): print('ran')")
    environ = environment(INFERSCOPE_ENABLE="1", INFERSCOPE_OUTPUT="/proc/no/place")
    done = subprocess.run([sys.executable, path], capture_output=True, env=environ, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, b"ran\n"), done.stderr.decode()
    assert b"inferscope" in done.stderr


def test_an_unpacked_wheel_on_pythonpath_works_as_well(script, tmp_path):
    """No pip, no bin folder: the package finds its command inside the wheel's own data folder."""
    wheel = os.environ.get("TEST_WHEEL")
    assert wheel, "TEST_WHEEL names the wheel that is tested: `make test` and `make test-wheel` set it"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    (command,) = (tmp_path / "unpacked").glob("inferscope-*.data/scripts/inferscope")
    command.chmod(0o755)
    path = script("import inferscope\nwith inferscope.scope('x'): print(inferscope.__file__)")
    folder = tmp_path / "trace"
    python = Path(sys.executable).resolve()  # Not the environment's: there the package is installed.
    environ = environment(PYTHONPATH=str(tmp_path / "unpacked"))
    for number, command_line in enumerate(
        [[command, "run", "--output", f"{folder}0", "--", python, path], [python, path]]
    ):
        extra = {} if number == 0 else {"INFERSCOPE_ENABLE": "1", "INFERSCOPE_OUTPUT": f"{folder}1"}
        done = subprocess.run(command_line, capture_output=True, env=environ | extra, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr.decode()
        assert str(tmp_path / "unpacked") in done.stdout.decode()
        assert the_report(Path(f"{folder}{number}")).texts(SCOPE) == ["x"]


@pytest.mark.parametrize("ends", [False, True])
def test_the_report_makes_way_for_a_program_that_goes_on(script, tmp_path, ends):
    """After stop() the recorder has the lowest priority; a program that ends waits for it, and it hurries."""
    path = script("""
        import os, subprocess, sys
        import inferscope
        from inferscope._recording import _This
        inferscope.start(output="here")
        with inferscope.scope("work"): pass
        recorder = _This.recorder
        # Looks from outside: this process may be about to end.
        look = '''if True:
            import os, sys, time
            recorder, done = int(sys.argv[1]), sys.argv[2]
            while not os.path.exists(done): time.sleep(0.001)
            print(*{os.getpriority(os.PRIO_PROCESS, int(task)) for task in os.listdir(f"/proc/{recorder}/task")})
        '''
        done = os.path.join(recorder._segments, "done")
        environment = {name: value for name, value in os.environ.items() if "INFERSCOPE" not in name}
        looking = subprocess.Popen([sys.executable, "-I", "-c", look, str(recorder._pid), done], env=environment)
        if sys.argv[1:]:
            # As at the end of the program, with the segments left for a moment longer.
            recorder._clean = looking.wait
        else:
            # Does not wait for the report, so the segments stay.
            inferscope.stop(timeout=0)
            looking.wait()
    """)
    words = ["ends"] if ends else []
    done = subprocess.run(
        [sys.executable, path, *words], capture_output=True, env=environment(), timeout=PATIENCE_S, cwd=tmp_path
    )
    nice = os.getpriority(os.PRIO_PROCESS, 0) if ends else 19
    assert (done.returncode, done.stderr, done.stdout.decode().split()) == (0, b"", [str(nice)])
