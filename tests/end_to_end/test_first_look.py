"""The first look at examples/: the summary names the planted problem, and every example runs and shows what it says."""

import re
import subprocess
import sys

import pytest
from recording import MARK, REPOSITORY, SCOPE, STEP, analyze, environment, inferscope

EXAMPLES = REPOSITORY / "examples"
SERVICE = EXAMPLES / "service.py"


def planted() -> int:
    """The line of the planted problem."""
    (number,) = [n for n, line in enumerate(SERVICE.read_text().splitlines(), 1) if "sorted(self.words" in line]
    return number


@pytest.fixture
def service(record):
    ours = record(sys.executable, SERVICE)
    assert ours.code == 0, ours.told
    return ours.trace


def test_the_hottest_lines_are_the_planted_problem(service):
    # Idle threads are sampled as well: they count as waiting, not as hot.
    leaves = service.python_lines()
    active = [leaves[row["stack"]] for row in service.table("samples") if row["state"] & 1]
    in_planted = [leaf for leaf in active if leaf[1] == planted()]
    assert len(in_planted) > len(active) / 3, "most of the work is building the vocabulary again and again"
    summary = analyze(service)
    hot = re.search(r"service\.py:(\d+)", summary)
    assert hot, summary
    assert int(hot.group(1)) == planted(), summary


def test_scopes_steps_and_marks_of_the_service(service):
    scopes = service.texts(SCOPE)
    assert scopes.count("request") == 2400
    steps = service.texts(STEP)
    assert scopes.count("tokenize") == scopes.count("compute") == scopes.count("detokenize") == len(steps)
    assert scopes.count("forward") == 4 * len(steps)
    assert set(service.texts(MARK)) == {"unknown_word"}
    summary = analyze(service)
    for word in ("tokenize", "compute", "batch", "p50", "p99", "batcher", "client-0"):
        assert word in summary, summary


def test_tokenising_is_most_of_a_batch_as_planted(service):
    total = {
        name: sum(row["dur_ns"] for row in service.slices(SCOPE) if row["text"] == name)
        for name in ("tokenize", "compute")
    }
    assert total["tokenize"] > total["compute"]


def test_the_fixed_service_is_no_longer_hot_there(record):
    ours = record(sys.executable, SERVICE, "--fixed")
    assert ours.code == 0
    hottest = ours.trace.hottest()
    there = sum(count for (_, line), count in hottest.items() if line == planted())
    assert there <= sum(hottest.values()) / 10


def test_the_service_runs_without_inferscope(script):
    hidden = script("import sys; sys.modules['inferscope'] = None", name="hidden/sitecustomize.py").parent
    command = [sys.executable, SERVICE, "--requests", "8"]
    done = subprocess.run(command, capture_output=True, env=environment(PYTHONPATH=str(hidden)))
    assert b"8 requests" in done.stdout, done.stderr.decode()


@pytest.mark.parametrize("name", ["asyncio_tasks", "threads", "alone"])
def test_the_other_examples_run(name, record, tmp_path):
    path = EXAMPLES / f"{name}.py"
    alone = subprocess.run([sys.executable, path], capture_output=True, env=environment(), cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr.decode()
    ours = record(sys.executable, path, cwd=tmp_path)
    assert ours.code == 0, ours.told
    assert ours.trace.texts(SCOPE)


def test_tasks_keep_their_own_nesting(record):
    trace = record(sys.executable, EXAMPLES / "asyncio_tasks.py").trace
    by_id = {row["id"]: row for row in trace.slices(SCOPE)}
    for row in by_id.values():
        if row["text"] in ("fetch", "digest"):
            assert by_id[row["parent"]]["text"] == "request"
    assert trace.texts(SCOPE).count("request") == 50


def test_analyze_without_an_argument_opens_the_newest(tmp_path):
    for program in ("true", "echo"):  # In the same second, and not in the order of the alphabet.
        assert inferscope("run", "--quiet", "--", program, cwd=tmp_path).returncode == 0
    done = inferscope("analyze", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines()[0] == "echo"
