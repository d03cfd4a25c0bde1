"""PyTorch, NumPy and an asyncio web service under `inferscope run`: same results, and what they did is in the trace."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import CALL, MARK, SCOPE, STEP, Recorded, Trace, environment, inferscope  # noqa: E402


def record(folder: Path, script: str, *options: str) -> Recorded:
    command = ["run", "--output", folder / "trace", *options, "--", sys.executable, HERE / script]
    done = inferscope(*command, timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return Recorded(done.returncode, done.stdout, done.stderr, Trace(folder / "trace"))


def plain(script: str) -> bytes:
    return subprocess.run([sys.executable, HERE / script], capture_output=True, env=environment(), check=True).stdout


def test_torch_gives_the_same_results_and_is_recorded(tmp_path):
    ours = record(tmp_path, "torch_inference.py")
    assert ours.out == plain("torch_inference.py")
    scopes = ours.trace.texts(SCOPE)
    assert scopes.count("request") == 3
    assert scopes.count("embedding") == scopes.count("layers") == scopes.count("head") == 36
    steps = ours.trace.texts(STEP)
    assert (steps.count("token"), steps.count("batch")) == (36, 4)
    assert ours.trace.texts(MARK) == ["answered"] * 3
    assert ours.trace.lost() == 0
    # Stacks: the model's own lines, and PyTorch's Python below them.
    files = {row["file"] or "" for row in ours.trace.table("names")}
    assert any(file.endswith("torch_inference.py") for file in files)
    assert any("torch/nn/modules" in file for file in files)
    # The loader's two workers are processes of the trace.
    assert len([process for process in ours.trace.manifest["processes"] if process["python"]]) >= 3


@pytest.mark.parametrize(
    "options", [("--calls",), ("--calls=c",), ("--calls", "--include", "torch_inference,__main__")]
)
def test_torch_with_calls(tmp_path, options):
    ours = record(tmp_path, "torch_inference.py", *options)
    assert ours.out == plain("torch_inference.py")
    calls = [name.rpartition(".")[2] for name in ours.trace.texts(CALL)]
    assert calls.count("generate") == 3
    if "--include" in options:
        called = {row["name"] for row in ours.trace.slices(CALL)}
        files = {row["file"] for row in ours.trace.table("names") if row["id"] in called}
        assert files == {str(HERE / "torch_inference.py")}
    else:
        assert calls.count("forward") > 36


def test_torchs_own_profiler_still_works_beside_us(tmp_path):
    script = tmp_path / "both.py"
    script.write_text(
        "import torch\n"
        "from torch.profiler import profile, ProfilerActivity\n"
        "model = torch.nn.Linear(64, 64)\n"
        "with profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:\n"
        "    for _ in range(10): model(torch.ones(8, 64))\n"
        "print(sum(e.count for e in prof.key_averages() if e.key == 'aten::linear'))\n"
    )
    for number, options in enumerate([(), ("--calls",)]):
        folder = tmp_path / f"trace-{number}"
        done = inferscope("run", *options, "--output", folder, "--", sys.executable, script, timeout=110)
        assert (done.returncode, done.stdout) == (0, b"10\n"), done.stderr.decode()


@pytest.mark.parametrize("options", [(), ("--calls",)])
def test_an_asyncio_web_service(tmp_path, options):
    ours = record(tmp_path, "web_service.py", *options)
    assert ours.out == b"True\n"
    scopes = {row["id"]: row for row in ours.trace.slices(SCOPE)}
    names = [row["text"] for row in scopes.values()]
    assert names.count("handle") == names.count("compute") == names.count("wait") == names.count("client") == 200
    for row in scopes.values():
        if row["text"] in ("compute", "wait"):
            assert scopes[row["parent"]]["text"] == "handle"
    assert ours.trace.lost() == 0
