"""The real torchrun: one trace with every rank in it, named, and each can be looked at alone."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import STEP, Trace, analyze, inferscope  # noqa: E402


def test_torchrun_gives_one_trace_with_every_rank(tmp_path):
    run = ["run", "--output", tmp_path / "trace", "--", sys.executable, "-m", "torch.distributed.run"]
    ranks = ["--standalone", "--nproc-per-node", "2", HERE / "torch_ranks.py"]
    done = inferscope(*run, *ranks, timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    assert b"2 ranks: 144" in done.stdout, done.stdout
    trace = Trace(tmp_path / "trace")
    ranked = [process for process in trace.manifest["processes"] if "rank" in process]
    assert sorted((process["rank"], process["local_rank"], process["world_size"]) for process in ranked) == [
        (0, 0, 2),
        (1, 1, 2),
    ]
    assert trace.texts(STEP).count("batch") == 10
    assert trace.lost() == 0
    alone = analyze(tmp_path / "trace" / "rank-1")
    assert "rank 1 " in alone and "rank 0 " not in alone, alone
