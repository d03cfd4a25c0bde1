"""What the recorder itself takes of a full core is known, said, and neither blamed on others nor the first finding."""

import json
import os

from recording import inferscope

# Deep stacks that change all the time: what a sample costs most for. The work is counted, so that it ends.
BUSY = """
    from inferscope import step
    def walk(depth):
        return sum(range(50)) if depth == 0 else walk(depth - 1) + 1
    def handle():
        for _ in range(600):
            walk(60)
    for _ in step(range(120), name="request"):
        handle()
"""


def read(trace):
    done = inferscope("analyze", trace.folder, "--format", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def growth(trace, counter):
    names = {row["id"]: row["text"] for row in trace.table("names")}
    rows = [row["value"] for row in trace.table("counters") if names[row["counter"]] == counter]
    return max(rows, default=0) - min(rows, default=0)


def test_at_a_high_rate_on_one_core_the_sampler_is_not_what_the_program_is_told_to_fix(script, record):
    core = min(os.sched_getaffinity(0))
    # The recorder and the program share one core: what the one takes the other waits for.
    kept = {"preexec_fn": lambda: os.sched_setaffinity(0, {core})}
    ours = record(script(BUSY), options=("--rate", "1000"), **kept)
    assert ours.code == 0, ours.told
    said = read(ours.trace)
    assert growth(ours.trace, "recorder_cpu_ns") > 0, "the recorder's own time is a counter of every trace"
    first = said["findings"][0]
    assert not first["title"].startswith("Recording takes"), first
    for found in (one for one in said["findings"] if one["code"] == "launch-thread-descheduled"):
        told = " ".join(evidence["text"] for evidence in found["evidence"])
        assert "recording takes" in told, f"what recording takes is said where a wait for a core is: {found}"
        if found["gain_percent"] is None:
            assert found["title"].startswith("Recording takes"), found
    assert "--rate" not in " ".join(said["answer"]), "nobody is told to sample a full core more often"
