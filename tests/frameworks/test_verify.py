"""`inferscope verify` with PyTorch: each fix is there in the middle of a step, also where the program sets the
opposite, and the results are what they were."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

from recording import inferscope  # noqa: E402

SCRIPT = HERE / "torch_fixes.py"
PLAIN = {
    "precision": "highest False",
    "cudnn": "False False",
    "attention": "False False",
    "channels_last": "False",
    "hooks": "0",
    "threads": "2",
}


def verify(folder, fix):
    command = ["verify", "--fix", fix, "--rounds", "2", "--output", folder, "--", sys.executable, SCRIPT]
    return inferscope(*command, timeout=280)


def printed(folder, which):
    lines = (folder / f"round-001-{which}.out").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


@pytest.mark.parametrize(
    ("fix", "changed", "said"),
    [
        ("tf32", {"precision": "high True", "cudnn": "False True"}, "which was 'highest'"),
        ("sdpa", {"attention": "True True"}, "kernels for attention: flash, mem_efficient, cudnn"),
        ("cudnn-benchmark", {"cudnn": "True False"}, "torch.backends.cudnn.benchmark = True"),
        ("channels-last", {"channels_last": "True"}, "2 Conv2d in channels_last"),
        ("threads=1", {"threads": "1"}, "1 threads for "),
    ],
)
def test_the_fix_is_there_and_nothing_else_is_different(tmp_path, fix, changed, said):
    folder = tmp_path / "kept"
    done = verify(folder, fix)
    assert done.returncode == 0, done.stderr.decode()
    out = done.stdout.decode()
    assert said in out and 'mean of step "request"' in out, out
    without, with_fix = printed(folder, "without"), printed(folder, "with")
    assert {name: without[name] for name in PLAIN} == PLAIN
    assert with_fix == without | changed
    assert "Output     differs only with the fix" in out, "the settings are part of what it prints"


@pytest.mark.parametrize(
    ("fix", "why"),
    [
        ("pinned-copies", "no tensor in pageable memory was copied to the GPU"),
        ("expandable-segments", "PyTorch used no CUDA memory"),
    ],
)
def test_what_has_no_effect_here_is_not_measured(tmp_path, fix, why):
    folder = tmp_path / "kept"
    done = verify(folder, fix)
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"{fix} was not applied, so nothing was measured: {why}" in done.stderr.decode()
    without, with_fix = printed(folder, "without"), printed(folder, "with")
    assert with_fix["result"] == without["result"]
