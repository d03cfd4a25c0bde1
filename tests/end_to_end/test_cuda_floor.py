"""The floor collector of benches/ on the stand-in for a GPU: its ways to go round the capture of a graph must do what
they say before anything is measured with them on a real one."""

import subprocess
import sys
from pathlib import Path

import pytest
from recording import PATIENCE_S, REPOSITORY, until

CAPTURE = "call cudaStreamBeginCapture nested=cuStreamBeginCapture_v2\nkernel inside us=2\n"
CAPTURED = "call cudaStreamEndCapture nested=cuStreamEndCapture\n"
GRAPH = "graph id=3\nkernel a node=1 us=2\nkernel b node=2 us=2\nend\n"
# One kernel before, one while, one after a capture, and a graph of two.
SCRIPT = f"kernel before us=2\n{CAPTURE}{CAPTURED}kernel after us=2\n{GRAPH}sync device\n"


@pytest.fixture(scope="module")
def floor(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("floor")
    subprocess.run([sys.executable, REPOSITORY / "benches" / "floor_build.py", folder], check=True)
    return folder / "floor_cupti.so"


def start(gpu, floor: Path, script: str, **settings: str) -> subprocess.Popen[str]:
    cupti = gpu.libraries.cupti("13.0")
    count = str(gpu.folder / "count")
    env = gpu.environment(
        script, cupti, CUDA_INJECTION64_PATH=str(floor), FLOOR_CUPTI=str(cupti), FLOOR_COUNT=count, **settings
    )
    return subprocess.Popen([gpu.app], env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def counted(gpu, process: subprocess.Popen[str]) -> list[int]:
    """Kernels, those without a time, and those of graphs."""
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, told
    return [int(word) for word in (gpu.folder / "count").read_text().split()]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [5, 0, 2]),
        ({"FLOOR_KINDS": "0"}, [0, 0, 0]),
        ({"FLOOR_AROUND": "1"}, [4, 0, 2]),
        ({"FLOOR_LATE": "1"}, [3, 0, 2]),
        ({"FLOOR_LATE": "1", "FLOOR_CALLS": "0"}, [3, 0, 2]),
    ],
    ids=lambda value: "-".join(value) or "plain" if isinstance(value, dict) else "",
)
def test_what_is_counted_around_a_capture(gpu, floor, settings, expected):
    assert counted(gpu, start(gpu, floor, SCRIPT, **settings)) == expected


def test_two_captures_at_once_are_both_left_out(gpu, floor):
    """On two streams: the first one's end is not the end of the second."""
    script = f"{CAPTURE}{CAPTURE}{CAPTURED}kernel still us=2\n{CAPTURED}kernel after us=2\nsync device\n"
    assert counted(gpu, start(gpu, floor, script, FLOOR_AROUND="1")) == [1, 0, 0]


def test_after_finalize_nothing_is_counted_and_nothing_asked_of_cupti(gpu, floor):
    go = gpu.folder / "go"
    script = f"await {go}\n{SCRIPT}"
    process = start(gpu, floor, script, FLOOR_STOP_AFTER="0", FLOOR_FINALIZE="1", FLOOR_FLUSH="1")
    try:
        assert process.stderr is not None
        assert "stopped, code 0" in until(process.stderr.readline, "the floor stops")
        go.touch()
        assert counted(gpu, process) == [0, 0, 0]
    finally:
        process.kill()
    calls = [line for line in gpu.log.read_text().splitlines() if " cupti" in line]
    assert "cuptiFinalize" in calls[-1], "the last call of CUPTI"
