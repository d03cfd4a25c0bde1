"""Real programs of ten kinds, with and without marks, recorded for a few seconds: their steps, start-up apart, never a
library's range, and a first finding that names what is planted. Weights are random; nothing is downloaded."""

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "end_to_end"), str(HERE.parent / "suite")]

import real_programs  # noqa: E402
from recording import Trace, inferscope  # noqa: E402


def record(folder, program, how):
    script = HERE / "programs" / f"{program}.py"
    done = inferscope("run", "--quiet", "--output", folder, "--", sys.executable, script, how, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("program", real_programs.PROGRAMS)
def test_steps_start_up_and_first_finding(tmp_path, program):
    printed = {}
    for how in real_programs.HOWS:
        folder = tmp_path / how
        printed[how] = record(folder, program, how)
        done = inferscope("analyze", folder, "--format", "json")
        assert done.returncode == 0, done.stderr.decode()
        analysis = json.loads(done.stdout)
        assert real_programs.wrong(real_programs.PROGRAMS[program], how, analysis) == []
        assert Trace(folder).lost() == 0
    # Marks change nothing that the program computes.
    assert printed["plain"] == printed["marked"]
