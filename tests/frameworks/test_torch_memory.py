"""The blocks of the real PyTorch's CPU allocator: every one that is handed out comes back, what is alive is what the
program says that it holds, and its results are what they are without us."""

import json
import math
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import Trace, environment, inferscope  # noqa: E402

SCRIPT, MARK, ALLOCATED, SAMPLED = HERE / "torch_memory.py", 3, 1, 3


def record(folder, *options):
    done = inferscope("run", "--output", folder, *options, "--", sys.executable, SCRIPT, "4", timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines(), Trace(folder)


def alive(rows, time):
    """What is alive at a moment, by its address; and what was freed and never seen allocated."""
    blocks, unknown = {}, 0
    for row in rows:
        if row["time_ns"] > time:
            break
        if row["operation"] == ALLOCATED:
            assert row["address"] not in blocks, "handed out twice"
            blocks[row["address"]] = row["bytes"]
        elif blocks.pop(row["address"], None) is None:
            unknown += 1
    return blocks, unknown


def test_what_is_alive_is_what_the_program_holds(tmp_path):
    (computed, said), trace = record(tmp_path / "trace", "--memory-events", "all")
    plain = subprocess.run([sys.executable, SCRIPT, "4"], capture_output=True, env=environment(), check=True)
    assert plain.stdout.decode().splitlines()[0] == computed
    rows = sorted(trace.table("blocks"), key=lambda row: row["time_ns"])
    parent = [row for row in rows if row["process"] == 0]
    assert sum(row["operation"] == ALLOCATED for row in parent) >= 12_000
    marks = {row["text"]: row["start_ns"] for row in trace.slices(MARK)}
    (before, _), (held, unknown) = alive(parent, marks["begin"]), alive(parent, marks["end"])
    mine = {address: bytes for address, bytes in held.items() if address not in before}
    assert mine == {int(address): bytes for address, bytes in json.loads(said).items()}
    after, unknown_after = alive(parent, marks["empty"])
    assert not mine.keys() & after.keys(), "everything came back"
    assert unknown_after == unknown, "and nothing that was never handed out"
    # One in 512 KiB has its stack; each block is drawn by itself, with a probability that its bytes give.
    churned = [
        row for row in parent if row["operation"] == ALLOCATED and marks["begin"] < row["time_ns"] < marks["end"]
    ]
    chances = [-math.expm1(-row["bytes"] / (512 << 10)) for row in churned]
    drawn = [row for row in churned if row["stack_reason"] == SAMPLED]
    deviation = math.sqrt(sum(chance * (1 - chance) for chance in chances))
    assert abs(len(drawn) - sum(chances)) < 6 * deviation
    lines = trace.python_lines()
    assert {lines[row["stack"]][0] for row in drawn if row["stack"]} == {"churn"}
    assert sum(row["stack"] is not None for row in drawn) > len(drawn) * 0.9
    # The child's own, in a segment of its own.
    assert 123_457 in [row["bytes"] for row in rows if row["process"] != 0]
    assert trace.lost() == 0


def test_by_default_the_cpus_blocks_are_not_recorded(tmp_path):
    _, trace = record(tmp_path / "trace")
    assert trace.table("blocks") == []
