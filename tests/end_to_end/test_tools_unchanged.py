"""What other tools say about a program is the same with InferScope installed, and while it records: pytest where every
warning is an error, coverage, trace, cProfile. Nothing of ours is in their reports, wherever the package is."""

import json
import os
import pstats
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent

import pytest
from recording import INFERSCOPE, PATIENCE_S, environment

PROGRAM = {
    "program.py": """
        import json.tool, os, part
        part.used()
        pid = os.fork()
        if pid == 0:
            part.in_child()
            os._exit(0)
        os.waitpid(pid, 0)
        try: import torch
        except ImportError: part.used()
    """,
    "without_torch.py": """
        import json.tool, part
        part.used()
    """,
    "part.py": """
        def used():
            return sum(range(10))
        def in_child():
            return used()
        def never():
            return used()
    """,
    "test_part.py": """
        import part
        def test_used():
            assert part.used() == 45
    """,
}
WAYS = ["plain", "recorded", "calls"]


@pytest.fixture
def project(tmp_path):
    """A folder with a program. The tool is beside it, and not in the program's environment: there every tool would take
    it for somebody else's."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in PROGRAM.items():
        (folder / name).write_text(dedent(text), encoding="utf-8")
    tool = tmp_path / "tool"
    packages = Path(sysconfig.get_paths()["purelib"])
    place = tool / packages.relative_to(sys.prefix) / "inferscope"
    shutil.copytree(packages / "inferscope", place, ignore=shutil.ignore_patterns("__pycache__"))
    (tool / "bin").mkdir()
    shutil.copy(INFERSCOPE, tool / "bin")
    return folder


@pytest.fixture
def outcome(project):
    """Runs a Python command in the project: plain, recorded, or with all calls recorded."""

    def run(way, *words, **variables):
        command = [sys.executable, *words]
        if way != "plain":
            options = ["--calls"] if way == "calls" else []
            trace = project.parent / way
            shutil.rmtree(trace, ignore_errors=True)
            inferscope = project.parent / "tool" / "bin" / "inferscope"
            command = [inferscope, "run", "--quiet", "--output", trace, *options, "--", *command]
        env = environment(PYTHONDONTWRITEBYTECODE="1", **variables)
        done = subprocess.run(
            list(map(str, command)), cwd=project, env=env, capture_output=True, text=True, timeout=PATIENCE_S
        )
        if way != "plain":
            assert json.loads((trace / "manifest.json").read_text())["state"] == "complete", done.stderr
        return done

    return run


def without_times(text):
    return [line.partition(" in ")[0] if "passed" in line else line for line in text.splitlines()]


PYTEST = ("-m", "pytest", "-p", "no:cacheprovider")


@pytest.mark.every_python
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", [("-W", "error", *PYTEST), (*PYTEST, "-W", "error"), (*PYTEST, "-c", "strict.ini")])
def test_pytest_runs_where_every_warning_is_an_error(project, outcome, way, words):
    (project / "strict.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    done = outcome(way, *words, "test_part.py")
    without = outcome("plain", *words, "-p", "no:inferscope", "test_part.py")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    # The list of plugins is the one line that may name ours.
    said = [line for line in without_times(done.stdout) if not line.startswith("plugins:")]
    assert said == [line for line in without_times(without.stdout) if not line.startswith("plugins:")]


@pytest.mark.every_python
def test_a_warning_that_is_an_error_does_not_end_the_program_that_cannot_be_recorded(outcome):
    code = "import inferscope; print(inferscope.start(), 'went on')"
    for enable in ("", "1"):
        done = outcome("plain", "-W", "error", "-c", code, INFERSCOPE_TRACE_SIZE_MB="none", INFERSCOPE_ENABLE=enable)
        assert (done.stdout, done.returncode) == ("False went on\n", 0), done.stderr
        assert done.stderr.count("nothing is recorded") == 1, done.stderr


@pytest.mark.parametrize("core", ["ctrace", "sysmon"])
@pytest.mark.parametrize("source", [(), ("--source", ".")])
def test_coverage_reports_the_same(outcome, core, source):
    reports = {}
    for way in WAYS:
        done = outcome(way, "-m", "coverage", "run", "--parallel-mode", *source, "program.py", COVERAGE_CORE=core)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        outcome("plain", "-m", "coverage", "combine")
        reports[way] = outcome("plain", "-m", "coverage", "report", "--show-missing").stdout
    assert "part.py" in reports["plain"] and "inferscope" not in reports["plain"]
    assert reports["recorded"] == reports["calls"] == reports["plain"]


@pytest.mark.parametrize("way", WAYS)
def test_pytest_cov_reports_the_same_and_warns_of_nothing(outcome, way):
    words = ("-W", "error", *PYTEST, "--cov=.", "--cov-report=term-missing", "test_part.py")
    done, without = outcome(way, *words), outcome("plain", *words, "-p", "no:inferscope")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "part.py" in done.stdout and "inferscope/" not in done.stdout
    said = [line for line in without_times(done.stdout) if not line.startswith("plugins:")]
    assert said == [line for line in without_times(without.stdout) if not line.startswith("plugins:")]


@pytest.mark.every_python
@pytest.mark.parametrize(
    "words", [("--listfuncs",), ("--trackcalls",), ("--count", "--summary", "--missing", "-C", "counted")]
)
def test_trace_lists_the_same(project, outcome, words):
    seen = {}
    for way in WAYS:
        done = outcome(way, "-m", "trace", *words, "program.py")
        assert done.returncode == 0, done.stderr
        files = sorted(os.listdir(project / "counted")) if (project / "counted").exists() else []
        shutil.rmtree(project / "counted", ignore_errors=True)
        seen[way] = (sorted(line for line in done.stdout.splitlines()), files)
    assert "part" in str(seen["plain"]) and "inferscope" not in str(seen["plain"])
    assert seen["recorded"] == seen["calls"] == seen["plain"]


@pytest.mark.every_python
@pytest.mark.parametrize("module", ["cProfile", "profile"])
def test_other_profilers_count_the_same_calls(project, outcome, module):
    counts = {}
    for way in ("plain", "recorded"):
        done = outcome(way, "-m", module, "-o", "stats", "without_torch.py")
        assert done.returncode == 0, done.stderr
        counts[way] = {
            key: value[:2]
            for key, value in pstats.Stats(str(project / "stats")).stats.items()
            # The machinery of imports asks one finder more.
            if key[0].endswith(".py")
        }
    assert any("part.py" in file for file, _, _ in counts["plain"])
    assert counts["recorded"] == counts["plain"]
