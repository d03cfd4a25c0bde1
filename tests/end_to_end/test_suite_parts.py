"""The suite's recordings, cut: half of each, a third out of the middle, every other sample. Less data may leave a cause
unsaid or unsure, but what is said with confidence has to stay right, and no healthy program may be blamed."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from pyarrow import compute, parquet

SUITE = Path(__file__).resolve().parents[1] / "suite"
sys.path.insert(0, str(SUITE))

import judge  # noqa: E402
from analysis import analyse  # noqa: E402
from catalogue import Program  # noqa: E402
from unpack import TRACES  # noqa: E402

TIMES = {"slices": "start_ns", "gpu": "start_ns", "samples": "time_ns", "counters": "time_ns", "allocations": "time_ns"}


def tables(trace, name):
    return sorted(trace.glob(f"{name}.*.parquet"))


def between(trace, first, last):
    """Leaves what began while this part of the GPU's work, from 0 to 1, was done."""
    starts = sorted(
        start.as_py() for file in tables(trace, "gpu") for start in parquet.read_table(file, columns=["start_ns"])[0]
    )
    since, until = starts[int(first * (len(starts) - 1))], starts[int(last * (len(starts) - 1))]
    for name, column in TIMES.items():
        for file in tables(trace, name):
            table = parquet.read_table(file)
            times = table[column]
            inside = compute.and_(compute.greater_equal(times, since), compute.less_equal(times, until))
            parquet.write_table(table.filter(inside), file)


def every_other_sample(trace):
    for file in tables(trace, "samples"):
        table = parquet.read_table(file)
        kept = set(sorted(set(table["time_ns"].to_pylist()))[::2])
        parquet.write_table(table.filter([time in kept for time in table["time_ns"].to_pylist()]), file)


PARTS = {
    "first half": lambda trace: between(trace, 0.0, 0.5),
    "second half": lambda trace: between(trace, 0.5, 1.0),
    "middle third": lambda trace: between(trace, 1 / 3, 2 / 3),
    "every other sample": every_other_sample,
}


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
