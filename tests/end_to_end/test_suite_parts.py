"""The suite's recordings, cut: half of each, a third out of the middle, every other sample. Less data may leave a cause
unsaid or unsure, but what is said with confidence has to stay right, and no healthy program may be blamed."""

import json
import shutil
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parents[1] / "suite"
sys.path.insert(0, str(SUITE))

import judge  # noqa: E402
from analysis import analyse  # noqa: E402
from catalogue import Program  # noqa: E402
from parts import PARTS  # noqa: E402
from unpack import TRACES  # noqa: E402


@pytest.mark.parametrize("part", PARTS)
def test_what_is_sure_stays_right_with_less_data(tmp_path, part):
    verdicts = []
    for row in json.loads((TRACES / "expected.json").read_text(encoding="utf-8")):
        program = Program.of(row)
        trace = tmp_path / program.name
        shutil.copytree(TRACES / program.name, trace)
        PARTS[part](trace)
        verdicts.append(judge.judge(program, analyse(Path(shutil.which("inferscope")), trace)))
        shutil.rmtree(trace)
    found = judge.figures(verdicts, {})
    print(part, found)
    assert found["programs"] >= 24
    assert found["right_percent"] >= 85, judge.matrix(verdicts)
    assert found["right_of_sure_percent"] >= judge.RIGHT_PERCENT, judge.matrix(verdicts)
    assert not found["healthy_blamed"]
