"""Real programs that mark nothing: the outermost calls of their models and request handlers are entries, by name and
number, and what the programs print is what they print without us."""

import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import Trace, environment, inferscope  # noqa: E402

ENTRY, OP = 12, 13

PROGRAMS = {
    "sklearn_predict": {
        "predict RandomForestClassifier": 6,
        "predict_proba RandomForestClassifier": 5,
        # One while the pipeline is fitted.
        "transform StandardScaler": 4 + 1,
        "predict Pipeline": 3,
    },
    "transformers_generate": {"generate LlamaForCausalLM": 5, "model LlamaForCausalLM": 4},
    "transformers_pipeline": {"pipeline TextClassificationPipeline": 3},
    "torch_loader": {"model ResNet": 6, "model Fails": 2, "model Sequential": 3, "model Linear": 10},
    "torch_loop": {"model Sequential": 200},
    "onnx_session": {"onnx InferenceSession": 7},
    # One while the gradient is computed.
    "jax_jit": {"jax forward": 5 + 1, "jax raised": 3},
    # The layers are called once each from outside, by themselves, when the model is built.
    "keras_predict": {"keras Sequential": 7, "keras Dense": 2},
    "keras_tensorflow": {"keras Sequential": 7, "keras Dense": 2},
    "wsgi_service": {"request GET": 3, "request POST": 2, "predict DummyClassifier": 5},
    "asgi_service": {"request GET": 4, "request DELETE": 1, "model Linear": 8},
}


if find_spec("tensorflow") is None:  # requirements.txt says for which Pythons there is none.
    del PROGRAMS["keras_tensorflow"]


def record(folder, program, *options):
    script = HERE / "programs" / f"{program}.py"
    done = inferscope("run", "--output", folder, *options, "--", sys.executable, script, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, Trace(folder)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What a program printed and its trace, recorded once."""
    known = {}

    def of(program):
        if program not in known:
            known[program] = record(tmp_path_factory.mktemp(program) / "trace", program)
        return known[program]

    return of


def plain(program):
    command = [sys.executable, HERE / "programs" / f"{program}.py"]
    return subprocess.run(command, capture_output=True, env=environment(), check=True).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_without_marks_has_entries(recorded, program):
    out, trace = recorded(program)
    assert out == plain(program)
    rows = trace.slices(ENTRY)
    assert Counter(row["text"] for row in rows) == PROGRAMS[program]
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        assert row["dur_ns"] is not None
        around = by_id.get(row["parent"])
        if around is not None:
            assert around["text"].startswith("request ")
            assert around["start_ns"] <= row["start_ns"]
            assert row["start_ns"] + row["dur_ns"] <= around["start_ns"] + around["dur_ns"]
    assert trace.lost() == 0


@pytest.mark.parametrize(("program", "asks"), [("wsgi_service", 1), ("asgi_service", 2)])
def test_a_model_that_a_request_asks_is_inside_it(recorded, program, asks):
    _, trace = recorded(program)
    rows = trace.slices(ENTRY)
    requests = {row["id"] for row in rows if row["text"].startswith("request ") and not row["parent"]}
    asked = Counter(row["parent"] for row in rows if not row["text"].startswith("request "))
    assert asked.keys() <= requests
    assert set(asked.values()) == {asks}
    # Nothing of what was asked for is in the trace.
    assert not any("token=42" in text for text in trace.names().values())


def test_requests_at_the_same_time_overlap(recorded):
    _, trace = recorded("asgi_service")
    rows = [row for row in trace.slices(ENTRY) if row["text"] == "request GET"]
    # None answers before all have come.
    assert max(row["start_ns"] for row in rows) < min(row["start_ns"] + row["dur_ns"] for row in rows)


def test_no_way_to_call_a_module_can_tell(recorded):
    """Script, trace, export, compile, functional calls, copies, hooks, a profiler, what `inspect` says, tracebacks."""
    out, trace = recorded("torch_ways")
    assert out == plain("torch_ways")
    names = Counter(row["text"] for row in trace.slices(ENTRY))
    # What PyTorch's own tools call on the way is theirs, and differs between versions.
    assert names["model Calls"] == names["model DataParallel"] == 1
    assert names["model Net"] >= 10
    assert all(row["dur_ns"] is not None for row in trace.slices(ENTRY))


def test_operators_are_looked_at_from_one_call_of_a_model_to_the_next(recorded):
    _, trace = recorded("torch_loop")
    calls = sorted(trace.slices(ENTRY), key=lambda row: row["start_ns"])
    products = [row["start_ns"] for row in trace.slices(OP) if row["text"] == "aten::addmm"]
    # Two in each call, in two calls that follow each other.
    looked_at = [
        number
        for number, call in enumerate(calls)
        if sum(call["start_ns"] <= at <= call["start_ns"] + call["dur_ns"] for at in products) == 2
    ]
    assert len(products) >= 4
    assert looked_at[1] == looked_at[0] + 1


def test_without_entries_there_are_none(tmp_path):
    out, trace = record(tmp_path / "trace", "wsgi_service", "--entries=false")
    assert out == plain("wsgi_service")
    assert trace.slices(ENTRY) == []
