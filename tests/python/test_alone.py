"""Programs that start the recorder themselves, with a stand-in that keeps to the same protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PACKAGE, PATIENCE_S, clean_environment

# A Python may take longer to start, and to fail, than a program waits for its recorder.
FAILS_AT_ONCE = '[ "$FAKE_RECORDER" != fails ] || { echo "inferscope: the disk is full" >&2; exit 1; }'


class Alone:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids: list[int] = []
        self.binary = folder / "inferscope"
        fake = Path(__file__).parent / "fake_recorder.py"
        self.binary.write_text(f'#!/bin/sh\n{FAILS_AT_ONCE}\nexec "{sys.executable}" "{fake}" "$@"\n')
        self.binary.chmod(0o755)

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "script.py").write_text(textwrap.dedent(script))
        environ = clean_environment() | {"PYTHONPATH": str(PACKAGE.parent), "INFERSCOPE_BIN": str(self.binary)}
        process = subprocess.Popen(
            [sys.executable, "script.py"],
            env=environ | environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pids.append(process.pid)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess([], process.returncode, out, err)

    def left_over(self) -> list[Path]:
        """Folders of segments that are still there."""
        return [path for pid in self.pids for path in Path("/dev/shm").glob(f"inferscope-*-{pid}-*")]

    def traces(self) -> list[Path]:
        return sorted((self.folder / "inferscope-traces").glob("*"))

    def seen(self, trace: Path | None = None) -> dict[str, object]:
        """What the recorder noted; it may end a little after the program does."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for folder in [trace] if trace else self.traces():
                if folder and (folder / "seen.json").exists() and (text := (folder / "seen.json").read_text()):
                    return json.loads(text)
            time.sleep(0.01)
        raise AssertionError("the recorder never finished")


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    alone = Alone(tmp_path)
    yield alone
    # The real recorder removes the folder of a dead program itself.
    for folder in alone.left_over():
        shutil.rmtree(folder, ignore_errors=True)


def test_start_and_stop(alone):
    done = alone.run("""
        import inferscope, os
        assert not inferscope.is_recording() and inferscope.report_path() is None
        assert inferscope.start(
            rate_hz=200, calls="c", include=["app", "lib"], exclude=["lib.slow"], min_us=5, trace_size_mb=8
        )
        assert inferscope.is_recording()
        folder = os.environ["INFERSCOPE_SEGMENTS"]
        assert os.stat(folder).st_mode & 0o777 == 0o700
        path = inferscope.report_path()
        assert inferscope.stop() == path and not inferscope.is_recording()
        print(path, open(path).read())
        assert not os.path.exists(folder) and not any(name.startswith("INFERSCOPE_S") for name in os.environ)
    """)
    assert (done.returncode, done.stderr) == (0, "")
    [trace] = alone.traces()
    assert done.stdout == f"{trace / 'report.md'} the report\n"
    assert "script" in trace.name
    seen = alone.seen()
    assert seen["stopped"] and len(seen["segments"]) == 1
    words = " ".join(map(str, seen["arguments"]))
    for option in ("--rate=200", "--calls=c", "--include=app,lib", "--exclude=lib.slow", "--min-us=5"):
        assert option in words
    assert "--trace-size-mb=8" in words


def test_what_is_given_goes_to_the_recorder_and_what_is_left_out_does_not(alone):
    """A no is given, too: it wins over the environment and the file, which only the recorder reads."""
    alone.run("import inferscope; inferscope.start('given', calls=False, layers=False, native=False, include=[])")
    flags = alone.seen(alone.folder / "given")["arguments"][3:]
    assert flags == ["--output=given", "--native=false", "--calls=false", "--include=", "--layers=false"]
    alone.run("import inferscope; inferscope.start(output='left')")
    assert alone.seen(alone.folder / "left")["arguments"][3:] == ["--output=left"]
    alone.run("import inferscope; inferscope.start('rest', rate_hz=0, device_hz=0, memory_hz=2.5, include='one')")
    flags = alone.seen(alone.folder / "rest")["arguments"][4:]
    assert flags == ["--no-stacks", "--include=one", "--memory-hz=2.5", "--device-hz=0"]


def test_what_the_recorder_answers_is_in_force_until_the_end(alone):
    done = alone.run("""
        import inferscope, os
        inferscope.start(calls="c", trace_size_mb=8)
        print(os.environ["INFERSCOPE_CALLS"], os.environ["INFERSCOPE_TRACE_SIZE_MB"])
        inferscope.stop()
        print(sorted(name for name in os.environ if name.startswith("INFERSCOPE")))
    """)
    assert done.stdout == "c 8\n['INFERSCOPE_BIN']\n"


def test_a_word_that_is_neither_yes_nor_no_is_said(alone):
    for word, says in (("on", ""), ("Off", ""), ("perhaps", "INFERSCOPE_ENABLE=perhaps: must be true or false")):
        done = alone.run("import inferscope; print(inferscope.is_recording())", INFERSCOPE_ENABLE=word)
        assert (done.returncode, done.stdout) == (0, f"{word == 'on'}\n")
        assert says in done.stderr and bool(says) == bool(done.stderr)


def test_the_environment_alone_is_enough(alone):
    done = alone.run("import inferscope; assert inferscope.is_recording()", INFERSCOPE_ENABLE="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert alone.seen()["stopped"]


def test_the_output_folder_is_what_was_asked_for(alone):
    done = alone.run("import inferscope; inferscope.start(output='here'); print(inferscope.stop())")
    assert done.stdout == f"{alone.folder / 'here' / 'report.md'}\n"
    done = alone.run("import inferscope; inferscope.start(); print(inferscope.stop())", INFERSCOPE_OUTPUT="there")
    assert done.stdout == f"{alone.folder / 'there' / 'report.md'}\n"


def test_a_folder_that_cannot_be_is_one_warning(alone):
    script = "import inferscope, os, shutil; os.mkdir('x'); os.chdir('x'); os.rmdir('../x'); print(inferscope.start())"
    done = alone.run(script)
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert done.stderr.count("RuntimeWarning") == 1


def test_many_threads_start_at_once(alone):
    done = alone.run("""
        import inferscope, threading
        barrier, answers = threading.Barrier(8), []
        def work():
            barrier.wait()
            answers.append(inferscope.start())
        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        print(answers)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{[True] * 8}\n", "")
    assert len(alone.traces()) == 1


def test_the_recorder_is_nobodys_child(alone):
    done = alone.run("""
        import inferscope, os
        inferscope.start()
        try: os.waitpid(-1, os.WNOHANG)
        except ChildProcessError: pass
        else: raise AssertionError("there is a child")
        print(os.getpid())
    """)
    assert done.stderr == ""
    seen = alone.seen()
    assert seen["parent"] != int(done.stdout) and seen["session"]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("pass", 0),
        ("raise ValueError('mine')", 1),
        ("sys.exit(7)", 7),
        ("os._exit(8)", 8),
        ("os.kill(os.getpid(), 15)", -15),
        ("os.kill(os.getpid(), 9)", -9),
    ],
)
def test_however_it_ends_the_recorder_finishes(alone, end, code):
    done = alone.run(f"""
        import inferscope, os, sys
        inferscope.start()
        {end}
    """)
    assert done.returncode == code
    alone.seen()
    [trace] = alone.traces()
    assert (trace / "report.md").read_text() == "the report"
    assert done.stderr.count("\n") == (3 if "raise" in end else 0) or "ValueError: mine" in done.stderr


def test_again_and_again(alone):
    done = alone.run("""
        import inferscope, os, resource
        reports = set()
        for _ in range(5):
            assert inferscope.start() and inferscope.start()
            with inferscope.scope("x"): pass
            reports.add(inferscope.stop())
            inferscope.stop()
        assert len(reports) == 5 and all(map(os.path.exists, reports))
    """)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(alone.traces()) == 5
    assert alone.left_over() == []


def test_the_memory_of_old_recordings_is_given_back(alone):
    done = alone.run("""
        import inferscope, re
        def shared():
            return int(re.search(r"RssShmem:\\s+(\\d+)", open("/proc/self/status").read())[1])
        for n in range(6):
            inferscope.start(calls=True)
            for _ in range(100): (lambda: 0)()
            inferscope.stop()
            if n == 0: first = shared()
        assert shared() <= first + 1000, (first, shared())
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_children_are_recorded_and_leave_the_recorder_alone(alone):
    done = alone.run("""
        import glob, inferscope, os, sys
        inferscope.start()
        folder = os.environ["INFERSCOPE_SEGMENTS"]
        pid = os.fork()
        if pid == 0:
            assert inferscope.is_recording()
            inferscope.stop()
            assert not os.path.exists(folder + "/stop")
            sys.exit(0)          # runs what was registered for the end of the program
        assert os.waitpid(pid, 0)[1] == 0
        assert inferscope.is_recording() and not os.path.exists(folder + "/stop")
        print(len(glob.glob(folder + "/*.segment")))
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_spawned_children_join(alone):
    done = alone.run(
        """
        import glob, inferscope, multiprocessing, os
        def work(): assert inferscope.is_recording()
        if __name__ == "__main__":
            assert inferscope.is_recording()
            children = [multiprocessing.get_context("spawn").Process(target=work) for _ in range(2)]
            [child.start() for child in children]; [child.join() for child in children]
            assert [child.exitcode for child in children] == [0, 0]
            print(len(glob.glob(os.environ["INFERSCOPE_SEGMENTS"] + "/*.segment")))
    """,
        INFERSCOPE_ENABLE="1",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert len(alone.traces()) == 1


def test_no_command_is_one_warning(alone):
    alone.binary.unlink()
    script = """
        import inferscope
        from inferscope import _binary
        _binary._candidates = lambda: iter(())
        print(inferscope.start(), inferscope.start(), inferscope.stop())
        with inferscope.scope("x"): pass
    """
    done = alone.run(script)
    assert (done.returncode, done.stdout) == (0, "False False None\n")
    assert done.stderr.count("RuntimeWarning") == 1 and "command was not found" in done.stderr


def test_a_recorder_that_fails_is_one_warning_with_its_words(alone):
    done = alone.run("import inferscope; print(inferscope.start(), inferscope.is_recording())", FAKE_RECORDER="fails")
    assert (done.returncode, done.stdout) == (0, "False False\n")
    assert done.stderr.count("RuntimeWarning") == 1 and "the disk is full" in done.stderr


def test_a_recorder_that_dies_does_not_hold_up_the_program(alone):
    done = alone.run(
        """
        import inferscope
        inferscope.start()
        print(inferscope.stop(timeout=100))
    """,
        FAKE_RECORDER="dies",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_recorder_that_does_not_answer_is_not_waited_for_for_long(alone):
    """Without its answer nobody knows with which settings to record: nothing is recorded, and that is said."""
    done = alone.run(
        """
        import inferscope
        from inferscope import _alone
        _alone._READY_S = 0.5
        print(inferscope.start(), inferscope.is_recording())
    """,
        FAKE_RECORDER="never ready",
    )
    assert (done.returncode, done.stdout) == (0, "False False\n")
    assert done.stderr.count("RuntimeWarning") == 1 and "did not answer" in done.stderr
    assert not alone.seen()["stopped"]
    assert alone.left_over() == []


def test_python_dash_m_is_the_command(alone):
    environ = clean_environment() | {"PYTHONPATH": str(PACKAGE.parent), "INFERSCOPE_BIN": "/bin/echo"}
    done = subprocess.run(
        [sys.executable, "-m", "inferscope", "doctor", "-v"], env=environ, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("doctor -v\n", 0)
    assert os.path.exists(PACKAGE / "py.typed")
