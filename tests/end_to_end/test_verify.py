"""`inferscope verify`: a fix is switched in a real program, measured against runs without it, and never said to be
there when it was not."""

import json
import math
import os
import signal
import sys

import pytest
from recording import FIX, MARK, PATIENCE_S, environment, inferscope, until

# Every step walks a large heap, unless that was frozen: what is left then is a small part of it.
COLLECTING = """
    import gc
    from inferscope import step

    class Node:
        def __init__(self):
            self.me = self

    heap = [Node() for _ in range(200_000)]
    for number in step(range(15), name="request"):
        gc.collect()
    print(len(heap))
"""
MINUS = "\N{MINUS SIGN}"
TRIVIAL = "print(sum(range(1000)))"


def verify(*arguments, **options):
    done = inferscope("verify", *arguments, **options)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def measured(*arguments, **options):
    code, out, err = verify("--format", "json", *arguments, **options)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.every_python
def test_a_fix_that_helps_is_predicted_measured_and_leaves_the_output_alone(script):
    told = measured("--fix", "gc-pauses", "--rounds", "3", "--", script(COLLECTING))
    assert (told["fix"], told["rule"], told["of"], told["step"]) == ("gc-freeze", "gc-pauses", "step", "request")
    assert "objects out of collections" in told["applied"]
    assert told["output"] == "same"
    assert told["predicted"]["change_percent"]["mid"] < -50, "collecting is nearly all that a step does"
    assert told["measured"]["change_percent"] < -30
    # The interval is that of the runs which are shown: Student's t of three pairs.
    logs = [math.log(b["ns"] / a["ns"]) for a, b in zip(told["without"], told["with"], strict=True)]
    mean = sum(logs) / 3
    half = 4.303 * math.sqrt(sum((log - mean) ** 2 for log in logs) / 2 / 3)
    expected = [100 * math.expm1(mean - half), 100 * math.expm1(mean + half)]
    assert told["measured"]["interval_percent"] == pytest.approx(expected)
    assert [run["steps"]["name"] for run in told["with"]] == ["request"] * 3
    assert told["answer"].startswith(f"predicted {MINUS}") and f", measured {MINUS}" in told["answer"]


def test_the_text_says_predicted_against_measured_and_progress_goes_to_stderr(script):
    code, out, err = verify("--fix", "gc-freeze", "--rounds", "2", "--", script(COLLECTING))
    assert code == 0, err
    assert out.startswith(f"gc-freeze: predicted {MINUS}")
    for word in ("Fix ", "Applied ", "Predicted ", "Measured ", "Without ", "With ", "Output ", "Risk "):
        assert f"\n{word}" in out, out
    assert 'mean of step "request"; 2 rounds' in out
    assert "recording the command once" in err and "round 2 of 2: " in err
    assert "200000" not in out + err, "what the command prints is not ours"


def test_where_no_rule_fired_it_is_said_and_measured_all_the_same(script):
    program = script("""
        from inferscope import step
        for _ in step(range(10), name="request"):
            sum(range(20_000))
    """)
    code, out, err = verify("--fix", "gc-pauses", "--rounds", "2", "--", program)
    assert code == 0, err
    assert "no prediction: no gc-pauses finding in this recording; measuring anyway" in err
    assert "Predicted  nothing: no gc-pauses finding in this recording" in out


def test_the_prediction_may_come_from_a_trace(script, record):
    program = script(COLLECTING)
    trace = record(program).trace.folder
    told = measured("--fix", "gc-pauses", "--rounds", "2", "--trace", trace, "--", program)
    assert told["predicted"]["change_percent"]["mid"] < -50
    code, _, err = verify("--fix", "gc-pauses", "--trace", trace / "nowhere", "--", program)
    assert code == 5 and "nowhere" in err


def test_cpus_are_given_to_the_process_and_a_program_without_steps_is_timed_as_a_whole(script):
    cpu = min(os.sched_getaffinity(0))
    program = script("""
        import os, subprocess, sys
        print(sorted(os.sched_getaffinity(0)))
        print(subprocess.check_output([sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]))
    """)
    told = measured("--fix", f"affinity={cpu}", "--rounds", "2", "--", program)
    assert (told["fix"], told["value"], told["of"]) == ("affinity", str(cpu), "process")
    assert told["applied"] == f"1 of {len(os.sched_getaffinity(0))} CPUs: {cpu}"
    assert told["output"] == ("same" if len(os.sched_getaffinity(0)) == 1 else "differs")
    assert all(run["steps"] is None and run["process_ns"] > 0 for run in told["with"])
    code, _, err = verify("--fix", "affinity=9999", "--", program)
    assert code == 2 and "there is no CPU 9999 for this process" in err


def test_threads_reach_the_pools_that_are_there(script):
    program = script("""
        import os, numpy
        numpy.ones((50, 50)) @ numpy.ones((50, 50))
        print(os.environ.get("OMP_NUM_THREADS"))
    """)
    told = measured("--fix", "threads=1", "--rounds", "2", "--", program)
    assert told["applied"].startswith("1 threads for ") and "openblas" in told["applied"]
    assert told["output"] == "differs", "the program prints the variable"
    code, out, err = verify("--fix", "threads=1", "--rounds", "2", "--", script(TRIVIAL))
    assert (code, out) == (1, "")
    assert "threads was not applied, so nothing was measured: no library with a thread pool" in err


@pytest.mark.every_python
@pytest.mark.parametrize(
    ("fix", "reason"),
    [
        ("tf32", "PyTorch was never imported"),
        ("channels-last", "PyTorch was never imported"),
        ("pinned-copies", "PyTorch was never imported"),
        ("gc-freeze", "no step began and no full garbage collection ran"),
        ("expandable-segments", "PyTorch was never imported"),
        ("eager-loading", "the CUDA driver was never loaded"),
    ],
)
def test_what_could_not_be_applied_is_not_measured(script, fix, reason):
    # Where the collector works incrementally, it may run at any moment.
    code, out, err = verify("--fix", fix, "--rounds", "2", "--", script("import gc; gc.disable(); print(1)"))
    assert (code, out) == (1, "")
    assert f"{fix} was not applied, so nothing was measured: {reason}" in err


def test_a_mark_of_the_program_never_says_that_a_fix_was_applied(script):
    program = script("""
        from inferscope import mark_event
        for name in ("inferscope.fix", "fix", "applied"):
            mark_event(name, metadata={"state": "applied", "what": "by a mark of the program"})
    """)
    code, out, err = verify("--fix", "tf32", "--rounds", "2", "--", program)
    assert (code, out) == (1, "")
    assert "tf32 was not applied, so nothing was measured: PyTorch was never imported" in err


def test_what_became_of_a_fix_is_recorded_under_a_kind_of_its_own(script, record):
    run = record(script("print(1)"), env=environment(INFERSCOPE_FIX="tf32"))
    moments = run.trace.slices(FIX)
    told = [(row["id"], row["text"]) for row in sorted(moments, key=lambda row: row["start_ns"])]
    assert told == [(1, "the program begins"), (3, "PyTorch was never imported"), (2, "the program ends")]
    assert run.trace.texts(MARK) == []
    assert run.trace.lost() == 0


def test_a_switch_that_fails_does_the_program_no_harm(script):
    script("def __getattr__(name): raise RuntimeError('not in this version')", "torch/__init__.py")
    program = script("import torch; print('the program goes on')")
    code, _, err = verify("--fix", "tf32", "--rounds", "2", "--output", program.parent / "kept", "--", program)
    assert code == 1
    assert "tf32 was not applied, so nothing was measured: RuntimeError: not in this version" in err
    assert (program.parent / "kept" / "round-001-with.out").read_text() == "the program goes on\n"
    code, _, err = verify("--fix", "tf32", "--output", program.parent / "kept", "--", program)
    assert code == 1 and "it is not empty" in err


def test_programs_without_python(tmp_path):
    code, _, err = verify("--fix", "gc-freeze", "--rounds", "2", "--", "true")
    assert code == 1 and "no Python process of this command could be reached" in err
    told = measured("--fix", "expandable-segments", "--rounds", "2", "--", "sh", "-c", "echo $PYTORCH_ALLOC_CONF")
    assert told["applied"].startswith("set in the environment; no Python process confirmed")
    assert told["output"] == "differs"
    extra = environment(PYTORCH_ALLOC_CONF="backend:native")
    verify("--fix", "expandable-segments", "--rounds", "2", "--output", tmp_path / "kept", "--", "sh", "-c",
           "echo $PYTORCH_ALLOC_CONF", env=extra)  # fmt: skip
    assert (tmp_path / "kept" / "round-001-with.out").read_text() == "backend:native,expandable_segments:True\n"


def test_steps_that_only_the_gpu_shows_are_timed_too(gpu):
    script = "repeat 40\nkernel a us=20\nkernel b us=20\nkernel c us=20\nsync device\nhost us=200\nend\n"
    env = gpu.environment(script, gpu.libraries.cupti("13.0"))
    told = measured("--fix", "eager-loading", "--rounds", "2", "--", gpu.app, env=env)
    assert told["of"] == "step", "no step is marked, but the kernels repeat"
    assert all(run["steps"]["count"] >= 30 for run in told["without"] + told["with"])


def test_a_command_that_fails_is_told_with_its_last_words(script):
    code, out, err = verify("--fix", "gc-freeze", "--", script("raise ValueError('planted')"))
    assert (code, out) == (1, "")
    assert "the command fails with exit code 1:" in err and "ValueError: planted" in err
    code, _, err = verify("--fix", "gc-freeze", "--", "no-such-command-here")
    assert code == 1 and "no-such-command-here: command not found" in err
    only_with = script("import os, sys; sys.exit('planted' if os.environ.get('INFERSCOPE_FIX') == 'gc-freeze' else 0)")
    code, _, err = verify("--fix", "gc-freeze", "--", only_with)
    assert code == 1 and "with the fix, the command fails with exit code 1:\n  planted" in err


def test_an_interrupt_ends_the_command_and_leaves_nothing(script, tmp_path):
    import subprocess

    from recording import INFERSCOPE

    program = script("""
        import pathlib, sys, time
        pathlib.Path(sys.argv[1]).touch()
        time.sleep(600)
    """)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    begun = tmp_path / "begun"
    command = [INFERSCOPE, "verify", "--fix", "gc-freeze", "--", sys.executable, program, begun]
    with subprocess.Popen(
        command, env=environment(TMPDIR=str(temporary)), stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            until(begun.exists, "the program runs")
            assert [path.name for path in temporary.iterdir()] == [f"inferscope-verify-{process.pid}"]
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, err
    assert b"interrupted" in err
    assert list(temporary.iterdir()) == []


def test_the_folder_of_the_runs_is_gone_when_all_went_well(script, tmp_path):
    measured("--fix", "gc-freeze", "--rounds", "2", "--", script("import gc; gc.collect()"),
             env=environment(TMPDIR=str(tmp_path)))  # fmt: skip
    assert not list(tmp_path.glob("inferscope-verify-*"))
