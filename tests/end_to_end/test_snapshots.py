"""Memory snapshots, pickled by Python itself with every protocol: what is said of them, and that two are compared."""

import json
import pickle
import sys
from pathlib import Path

import pytest
from recording import REPOSITORY, inferscope

sys.path.insert(0, str(REPOSITORY / "tests" / "snapshots"))

from write_snapshot import MIB, snapshot


def write(path, content, protocol=4):
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


def schema(name):
    return json.loads((REPOSITORY / "schema" / name).read_text(encoding="utf-8"))


def analysis(path):
    told = inferscope("analyze", path, "--format", "json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_says_the_same(tmp_path, protocol):
    said = analysis(write(tmp_path / "leaking.pickle", snapshot(24, leak=True), protocol))
    [memory] = said["memory"]
    assert set(memory) == set(schema("analysis.schema.json")["properties"]["memory"]["items"]["properties"])
    assert (memory["in_use_bytes"], memory["reserved_bytes"]) == (244 * MIB, 272 * MIB)
    assert [finding["code"] for finding in said["findings"]] == ["leak"]
    assert (said["findings"][0]["where"]["file"], said["findings"][0]["where"]["line"]) == ("serve.py", 31)


@pytest.mark.parametrize("requests", [1, 24, 200])
@pytest.mark.parametrize("leak", [False, True])
def test_the_simulator_reproduces_another_allocator_by_the_same_rules(tmp_path, requests, leak):
    [memory] = analysis(write(tmp_path / "one.pickle", snapshot(requests, leak)))["memory"]
    simulated = memory["simulated"]
    assert simulated["unchanged_peak_bytes"] == memory["peak_reserved_bytes"]
    assert simulated["blocks_at_recorded_address"] == simulated["blocks"] == memory["allocs"]


def test_a_healthy_service_has_no_finding(tmp_path):
    said = analysis(write(tmp_path / "healthy.pickle", snapshot(24, leak=False)))
    assert said["findings"] == []
    text = inferscope("analyze", tmp_path / "healthy.pickle").stdout.decode()
    assert "No problem found" in text and "0 ns" not in text


def test_two_are_compared_by_line(tmp_path):
    before = write(tmp_path / "before.pickle", snapshot(24, leak=False))
    after = write(tmp_path / "after.pickle", snapshot(24, leak=True))
    said = json.loads(inferscope("diff", before, after, "--format", "json").stdout)
    assert set(said) == set(schema("memory_comparison.schema.json")["properties"])
    assert said["places"][0]["function"] == "handle"
    assert said["places"][0]["bytes"] == [0, 48 * MIB]


def test_code_in_a_pickle_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path(tmp_path / "ran").touch, ())

    told = inferscope("analyze", write(tmp_path / "evil.pickle", {"segments": [Evil()]}))
    assert told.returncode == 5 and b"nothing in a pickle is executed" in told.stderr
    assert not (tmp_path / "ran").exists()
