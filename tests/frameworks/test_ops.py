"""Operator looks: the operators of two steps are in the trace with their values, the rules of the data flow find what
they show, and the program computes, prints and fails as without us whatever else it uses of PyTorch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import Trace, environment, inferscope  # noqa: E402

NVTX, OP, SCRIPT = 8, 13, HERE / "torch_ops.py"
TO = ("aten::to", "aten::_to_copy")  # As the tensor is one of inference mode or not.
WAYS = ("none", "training", "vmap", "overlapping", "script", "fork", "fails")
WAYS += ("threads", "replicas", "short threads", "entering")
DATAFLOW = {
    "repeated-work",
    "growing-concat",
    "dtype-churn",
    "batchable-loop",
    "per-element-loop",
    "dependent-chain",
    "padding-waste",
}


def record(folder, way, *options):
    done = inferscope("run", "--output", folder, *options, "--", sys.executable, SCRIPT, way, timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, Trace(folder)


def plain(way):
    return subprocess.run([sys.executable, SCRIPT, way], capture_output=True, env=environment(), check=True).stdout


def operators(trace):
    return [(row["text"], json.loads(row["args"])) for row in sorted(trace.slices(OP), key=lambda row: row["start_ns"])]


def analysed(folder):
    done = inferscope("analyze", folder, "--format", "json", timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def state(folder):
    process = json.loads((folder / "manifest.json").read_text())["processes"][0]
    return next(one for one in process["collectors"] if one["name"] == "ops")


def test_two_steps_have_their_operators_with_shapes_lines_and_values(tmp_path):
    out, trace = record(tmp_path / "trace", "weights")
    assert out == plain("weights")
    looked = operators(trace)
    first = [one for one in looked if one[1]["turn"] == [0, 0]]
    second = [one for one in looked if one[1]["turn"] == [0, 1]]
    assert [name for name, _ in first] == [name for name, _ in second]
    converted = [args for name, args in looked if name in TO and args["Input Dims"][0] == [1024, 1024]]
    assert [args["Output type"] for args in converted[:2]] == [["double"], ["double"]]
    # The same weights in both steps, and two results of them.
    assert converted[0]["in"] == converted[1]["in"] == converted[0]["params"]
    assert converted[0]["out"] != converted[1]["out"]
    assert "torch_ops.py:" in converted[0]["at"]
    assert converted[0]["at"].endswith(" Model.forward" if sys.version_info >= (3, 11) else " forward")
    # The innermost module around each, by its path.
    modules = {args["module"] for _, args in first if "module" in args}
    assert converted[0]["module"] == "Model" and modules == {"Model", "first", "second"}
    # The inputs of the two steps are not the same.
    inputs = [args["out"] for name, args in looked if name == "aten::randn"]
    assert inputs[0] != inputs[1]
    assert trace.lost() == 0


def test_without_the_option_there_are_none(tmp_path):
    out, trace = record(tmp_path / "trace", "mask", "--ops=false")
    assert out == plain("mask")
    assert operators(trace) == []


@pytest.mark.parametrize(
    ("way", "rule"),
    [
        ("mask", "repeated-work"),
        ("weights", "repeated-work"),
        ("cat", "growing-concat"),
        ("churn", "dtype-churn"),
        ("rows", "batchable-loop"),
        ("chain", "dependent-chain"),
        ("elements", "per-element-loop"),
    ],
)
def test_what_the_data_shows_is_found_at_its_line(tmp_path, way, rule):
    out, _ = record(tmp_path / "trace", way)
    assert out == plain(way)
    found = {finding["code"]: finding for finding in analysed(tmp_path / "trace")["findings"]}
    assert DATAFLOW & set(found) == {rule}
    assert "torch_ops.py:" in found[rule]["title"]


def test_a_loop_over_elements_is_vectorised_and_not_cached(tmp_path):
    out, _ = record(tmp_path / "trace", "elements", "--calls=c", "--include", "torch_ops,__main__")
    assert out == plain("elements")
    found = analysed(tmp_path / "trace")["findings"]
    told = [finding for finding in found if finding["code"] in ("per-element-loop", "hot-line")]
    assert told[0]["code"] == "per-element-loop"
    # Eight rows of 128, by the recorded calls.
    assert "reads 1,024 tensor elements one at a time per step" in told[0]["title"]
    here = [finding for finding in told if finding["where"]["function"] == "largest"]
    assert here
    for finding in here:
        assert finding["actions"][0].startswith("Vectorise"), finding
        assert "functools" not in json.dumps(finding["actions"])


def test_padding_of_ids_is_counted_and_named(tmp_path):
    out, trace = record(tmp_path / "trace", "padding")
    assert out == plain("padding")
    # Eight rows of 24 to 31 ids in 256.
    padding = sum(256 - length for length in range(24, 32))
    counted = [args["padded"] for name, args in operators(trace) if name == "aten::embedding"]
    assert counted
    assert all(one == [8 * 256, padding, 8 * (256 - 31), 0] for one in counted)
    found = {finding["code"]: finding for finding in analysed(tmp_path / "trace")["findings"]}
    assert "89 % of the tokens are padding: 8 rows padded to 256" in found["padding-waste"]["title"]
    assert found["padding-waste"]["actions"][0].startswith("Pad each batch to its longest row")


def test_steps_that_were_looked_at_are_in_no_figure(tmp_path):
    _, trace = record(tmp_path / "trace", "mask")
    looked_at = len({tuple(args["turn"]) for _, args in operators(trace)})
    steps = analysed(tmp_path / "trace")["steps"]
    assert f"{looked_at} of 24 in which operators were recorded are excluded" in steps["why"]
    assert steps["count"] <= 24 - looked_at


@pytest.mark.parametrize("way", WAYS)
def test_the_program_computes_prints_and_fails_as_without_us(tmp_path, way):
    out, trace = record(tmp_path / "trace", way)
    assert out == plain(way)
    assert operators(trace)


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("compile", "torch.compile is used"),
        ("profiler", "torch.profiler is running"),
        ("mode", "another dispatch mode"),
        ("capture", "a CUDA graph is being captured"),
    ],
)
def test_no_look_where_it_would_disturb(tmp_path, way, why):
    out, trace = record(tmp_path / "trace", way)
    assert out == plain(way)
    assert operators(trace) == []
    assert why in state(tmp_path / "trace")["reason"]


def test_a_look_ends_where_the_capture_of_a_graph_begins(tmp_path):
    out, trace = record(tmp_path / "trace", "capture later")
    assert out == plain("capture later")
    assert len(operators(trace)) <= 4


def test_a_look_that_began_before_the_first_step_ends(tmp_path):
    """By a call of a model while the first inputs are prepared: steps follow, and no call is told of any more."""
    out, trace = record(tmp_path / "trace", "between")
    assert out == plain("between")
    # As many turns as a look has, and no more: it did not go on through the steps.
    assert {tuple(args["turn"]) for _, args in operators(trace)} >= {(0, 0), (0, 1)}
    steps = analysed(tmp_path / "trace")["steps"]
    assert steps["source"] == "step"
    assert steps["count"] >= 24 - 8, steps["why"]


def started(begins, is_step=False):
    """At which of these begins on one thread a look may start."""
    from inferscope._ops.rhythm import Rhythm

    rhythm = Rhythm()
    return [place for place, name in enumerate(begins) if rhythm.is_turn(1, is_step, name)]


def test_a_look_follows_the_name_that_the_turn_of_the_loop_begins_with():
    assert started("aaaaaa") == [3, 4, 5]
    # A model, and another for each of sixteen rows: the first is called once a turn.
    assert started(("m" + "r" * 16) * 5) == [3 * 17, 4 * 17]
    # As often as each other: the later one is as good.
    assert started("ab" * 5)[0] == 7
    # What came twice while it was set up is waited for, but not for ever.
    assert started("mm" + "a" * 200)[0] == 2 + 100
    # Names with numbers in them never begin one, and take no memory.
    assert started(f"request {number}" for number in range(10_000)) == []


def test_threads_and_steps_have_rhythms_of_their_own():
    from inferscope._ops.rhythm import Rhythm

    rhythm = Rhythm()
    rhythm.is_turn(1, False, "warm-up")
    rhythm.is_turn(2, True, "other thread")
    assert [rhythm.is_turn(1, True, "request") for _ in range(4)] == [False, False, False, True]


def test_every_round_of_a_loop_is_in_the_look(tmp_path):
    """Where nothing is marked: not only from one row's call of a model to the next."""
    out, trace = record(tmp_path / "trace", "unmarked rows")
    assert out == plain("unmarked rows")
    products = [args["turn"] for name, args in operators(trace) if name == "aten::linear"]
    assert products.count([0, 0]) == products.count([0, 1]) == 2 + 16


def test_tracing_is_as_without_us(tmp_path):
    assert record(tmp_path / "trace", "trace")[0] == plain("trace")


def test_an_old_pytorch_is_refused_with_the_reason(monkeypatch):
    """One whose modes cannot say that they know higher-order operators."""
    from inferscope import _native, _ops
    from inferscope._ops import safety, trigger
    from torch.utils._python_dispatch import TorchDispatchMode

    assert safety.possible()
    said = []
    monkeypatch.delattr(TorchDispatchMode, "supports_higher_order_operators")
    monkeypatch.setattr(_native, "ops_state", lambda *words: said.append(words))
    monkeypatch.setattr(trigger, "listen", lambda *_: said.append("listens"))
    assert not safety.possible()
    _ops.begin()
    assert said == [("failed", "this PyTorch is too old: its dispatch modes reject higher-order operators")]


def test_ranges_of_emit_nvtx_are_no_steps_and_no_look_joins_them(tmp_path):
    out, trace = record(tmp_path / "trace", "emit_nvtx")
    assert out == plain("emit_nvtx")
    assert operators(trace) == []
    assert "torch.profiler is running" in state(tmp_path / "trace")["reason"]
    ranges = [row["text"] for row in trace.slices(NVTX)]
    # Each name has its number, and the shapes: none of them is like another.
    assert sum(name.startswith("aten::linear") and "sizes" in name for name in ranges) == 24 * 2
    steps = analysed(tmp_path / "trace")["steps"]
    # By the call or by the turn around it; on a busy machine some are warm-up.
    assert steps["name"] in ("model Sequential", "iteration (model Sequential)"), steps
    assert steps["count"] + steps["warmup"] in (23, 24), steps
