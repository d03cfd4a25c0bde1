"""`--layers`: the modules of a PyTorch model are in the trace under their paths, for a few calls; results, compilation
and later calls are as without us."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import Trace, environment, inferscope  # noqa: E402

LAYER, SCRIPT = 9, HERE / "torch_layers.py"
BLOCKS = [
    path
    for block in ("layers.0", "layers.1")
    for path in (block, *(f"{block}.{part}" for part in ("attention", "mlp", "mlp.0", "mlp.1", "mlp.2")))
]
CALL = ["Model", *BLOCKS, "head"]


def record(folder, way, *options):
    done = inferscope("run", "--output", folder, *options, "--", sys.executable, SCRIPT, way, timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, Trace(folder)


def plain(way):
    command = [sys.executable, SCRIPT, way]
    return subprocess.run(command, capture_output=True, env=environment(), check=True).stdout


def layers(trace):
    return sorted(trace.slices(LAYER), key=lambda row: (row["start_ns"], row["id"]))


def whole(rows):
    """Every range ended, and lies in the one that it says it is in."""
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        assert row["dur_ns"] is not None, row
        if row["parent"]:
            around = by_id[row["parent"]]
            assert around["thread"] == row["thread"]
            assert around["start_ns"] <= row["start_ns"]
            assert row["start_ns"] + row["dur_ns"] <= around["start_ns"] + around["dur_ns"]
    return rows


def test_four_calls_have_every_module_by_its_path_and_then_nothing_is_in_the_way(tmp_path):
    out, trace = record(tmp_path / "trace", "eager", "--layers")
    # The hooks that are left and the threads that there are come first, then the digest.
    assert (out.splitlines()[0], out.splitlines()[-1]) == (b"0 0 1", plain("eager").splitlines()[-1])
    assert sys.version_info < (3, 12) or out.splitlines()[1] == b"[0]"
    rows = whole(layers(trace))
    assert [row["text"] for row in rows[: 4 * len(CALL)]] == 4 * CALL
    # A later look, a second or more after the first, sees whole calls too.
    assert len(rows) % len(CALL) == 0
    assert trace.lost() == 0


def analysed(folder, kind):
    done = inferscope("analyze", folder, "--format", kind, timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_on_a_cpu_the_report_has_layers_and_operators(tmp_path):
    _, trace = record(tmp_path / "trace", "eager", "--layers")
    assert "layers-without-gpu" not in [note["code"] for note in trace.manifest["notes"]]
    said = json.loads(analysed(tmp_path / "trace", "json"))
    layers = said["host_layers"]
    # The first of four calls, and the one in which operators were recorded.
    assert layers["model_calls"] >= 1 and layers["excluded_calls"] >= 1
    rows = {row["name"]: row for row in layers["rows"]}
    assert sorted(rows) == sorted(CALL)
    assert {row["model"] for row in layers["rows"]} == {"Model"}
    assert abs(sum(row["percent"] for row in layers["rows"]) - 100) < 1
    assert rows["layers.0"]["own_us"] < rows["layers.0"]["total_us"]
    operators = {(row["operator"], row["shapes"]): row for row in said["operators"]["rows"]}
    # Both blocks have it, once a step; it has two names, as the tensor is one of inference mode or not.
    wide = [
        row for (name, shapes), row in operators.items() if "[32]" in shapes and name in ("aten::linear", "aten::addmm")
    ]
    assert [(row["module"], row["calls"], row["dtype"]) for row in wide] == [("layers.*.mlp.0", 2, "float32")]
    assert wide[0]["file"].endswith("torch_layers.py") and wide[0]["gflop_per_s"] > 0
    text = analysed(tmp_path / "trace", "text")
    assert "Layers by own CPU time" in text and "Operators on the CPU" in text
    assert "no layers" not in text


def test_without_the_option_there_are_none(tmp_path):
    out, trace = record(tmp_path / "trace", "eager")
    assert out == plain("eager")
    assert layers(trace) == []


def test_threads_have_their_own_ranges(tmp_path):
    out, trace = record(tmp_path / "trace", "threads", "--layers")
    assert out == plain("threads")
    rows = whole(layers(trace))
    roots = [row for row in rows if not row["parent"]]
    assert {row["text"] for row in roots} == {"Model"}
    assert {row["text"] for row in rows} <= set(CALL)
    assert len(roots) >= 4


def test_an_exception_ends_what_it_leaves(tmp_path):
    out, trace = record(tmp_path / "trace", "exceptions", "--layers")
    assert out == plain("exceptions")
    once = ["Fragile", "before", "broken", "broken.inner", "after"]
    rows = whole(layers(trace))
    alone = ["broken", "broken.inner"]
    assert [row["text"] for row in rows] == [*once, *alone, *once, *alone, *once]
    names = {row["id"]: row["text"] for row in rows}
    assert {names[row["parent"]] for row in rows if row["text"] == "after"} == {"Fragile"}


def test_models_and_layers_called_from_outside(tmp_path):
    out, trace = record(tmp_path / "trace", "outside", "--layers")
    assert out == plain("outside")
    block = [path for path in CALL if path.startswith("layers.1")]
    # Of a second model that is alive beside the first, the paths begin with its class.
    second = ["Sequential", "Sequential.0", "Sequential.1"]
    assert [row["text"] for row in whole(layers(trace))] == ["ReLU", *CALL, *block, *second]


def test_a_draft_model_and_its_target_are_both_there(tmp_path):
    out, trace = record(tmp_path / "trace", "drafted", "--layers")
    assert out == plain("drafted")
    roots = [row["text"] for row in whole(layers(trace)) if not row["parent"]]
    # A later look, a second or more after the first, may see one more of each.
    assert roots.count("Model") >= 4 and roots.count("Target") >= 4
    assert len(roots) <= 12


def test_a_model_that_always_fails_is_not_watched_for_ever(tmp_path):
    out, trace = record(tmp_path / "trace", "failing", "--layers")
    assert out == plain("failing"), "no hook is left"
    assert [row["text"] for row in whole(layers(trace))][:8] == 4 * ["Broken", "inner"]


def test_a_copy_of_a_watched_model_is_like_any_and_is_let_go(tmp_path):
    out, trace = record(tmp_path / "trace", "copied", "--layers")
    assert out == plain("copied")
    rows = [row["text"] for row in whole(layers(trace))]
    assert rows == [*CALL, "Model-2", *(f"Model-2.{path}" for path in CALL[1:])]


def test_a_compiled_model_is_compiled_once_and_has_one_range(tmp_path):
    out, trace = record(tmp_path / "trace", "compiled", "--layers")
    assert out == plain("compiled"), "as many frames compiled, as many graph breaks"
    rows = [row["text"] for row in whole(layers(trace))]
    if sys.version_info >= (3, 12):
        assert set(rows) == {"Model (compiled)"}
        assert len(rows) >= 4
    else:
        # PyTorch's hooks are what there is before 3.12, and its compiler sees those: it goes first.
        assert rows == []
        said = [line for line in trace.manifest["processes"][0]["collectors"] if line["name"] == "layers"]
        assert "torch.compile" in said[0]["reason"]
