"""A trace needs no InferScope to be read: Arrow and DuckDB see the documented tables, and the exports hold the same
events."""

import json

import pyarrow.parquet
import pytest
from recording import CALL, SCOPE, STEP, inferscope

SCRIPT = """
    import time
    from inferscope import scope, step, mark_event
    def leaf(): return 1
    for number in step(range(30), name="request"):
        with scope("outer", tags={"number": number}):
            mark_event("moment", metadata={"at": number})
            with scope("inner"):
                for _ in range(10): leaf()
    # Long enough for several files; counted, so that a fast machine records no more than a slow one.
    for _ in range(150):
        time.sleep(0.01)
        for _ in range(100): leaf()
"""


@pytest.fixture
def recorded(script, record):
    ours = record(script(SCRIPT), options=("--calls",))
    assert ours.code == 0, ours.told
    return ours.trace


def test_duckdb_answers_questions_about_a_trace(recorded):
    import duckdb  # Only on the Python that runs the whole suite.

    folder = recorded.folder
    counts = duckdb.sql(f"""
        SELECT names.text, count(*) AS count, min(slices.dur_ns) AS least
        FROM '{folder}/slices.*.parquet' AS slices JOIN '{folder}/names.*.parquet' AS names ON slices.name = names.id
        WHERE slices.kind IN ({SCOPE}, {STEP}) GROUP BY names.text ORDER BY names.text
    """).fetchall()
    assert [(name, count) for name, count, _ in counts] == [("inner", 30), ("outer", 30), ("request", 30)]
    assert all(least > 0 for _, _, least in counts)


def test_the_columns_are_the_documented_ones(recorded):
    expected = {
        "slices": ["start_ns", "dur_ns", "process", "thread", "kind", "name", "id", "parent", "args"],
        "samples": ["time_ns", "process", "thread", "stack", "state"],
        "stacks": ["id", "parent", "name", "line"],
        "names": ["id", "text", "file", "line"],
        "counters": ["time_ns", "process", "thread", "counter", "value"],
        "threads": ["time_ns", "process", "thread", "name"],
        "anchors": ["ticks", "mono_ns", "real_ns", "residual_ns"],
    }
    for table, columns in expected.items():
        files = list(recorded.folder.glob(f"{table}.*.parquet"))
        assert files, f"no {table}"
        for file in files:
            assert pyarrow.parquet.read_schema(file).names == columns


def test_children_lie_inside_their_parents(recorded):
    slices = {row["id"]: row for row in recorded.slices() if row["kind"] in (SCOPE, STEP)}
    for row in slices.values():
        if row["parent"]:
            parent = slices[row["parent"]]
            assert parent["start_ns"] <= row["start_ns"]
            assert row["start_ns"] + row["dur_ns"] <= parent["start_ns"] + parent["dur_ns"]
    parents = {row["text"]: slices[row["parent"]]["text"] for row in slices.values() if row["parent"]}
    assert parents == {"outer": "request", "inner": "outer"}


def test_calls_nest_and_none_is_lost(recorded):
    manifest = recorded.manifest
    assert manifest["settings"]["calls"]
    leaves = [row for row in recorded.slices(CALL) if row["text"].rpartition(".")[2] == "leaf"]
    assert len(leaves) == 30 * 10 + 150 * 100
    assert recorded.lost() == 0
    assert all(manifest["started_ns"] <= row["start_ns"] for row in leaves)


def test_the_exports_hold_every_event(recorded, tmp_path):
    chrome, ours = tmp_path / "chrome.json", tmp_path / "ours.json"
    for kind, file in (("chrome", chrome), ("json", ours)):
        done = inferscope("export", recorded.folder, "--format", kind, "--output", file)
        assert done.returncode == 0, done.stderr.decode()
    slices = [row for row in recorded.slices() if row["dur_ns"]]
    complete = [event for event in json.loads(chrome.read_text())["traceEvents"] if event["ph"] in "XB"]
    assert len(complete) >= len(slices)
    exported = json.loads(ours.read_text())
    assert exported["format_version"] == "1.1"
    ids = [event["id"] for event in exported["events"]]
    assert len(ids) == len(set(ids)) >= len(slices)
    assert {scope["name"] for scope in exported["relationships"]["scopes"]} >= {"outer", "inner"}
