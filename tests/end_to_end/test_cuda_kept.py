"""Memory that CUPTI keeps for every launch after a CUDA graph was captured is said when it has become much, and only
then. The stand-in keeps none: what is tested is the count and the words."""

import subprocess
import sys

import pytest
from recording import PATIENCE_S, Trace

CAPTURE = "call cudaStreamBeginCapture\ncaptured k node=5\ncall cudaStreamEndCapture\ninstantiate 5:6\n"
# The graph is built node by node: nothing is captured.
BUILT = "instantiate 5:6\n"
LAUNCHES = 2_000_000


def launches(count: int) -> str:
    """Launches without work, as of empty grids: a kernel for each would be a trace of minutes."""
    return f"repeat {count}\ncall cudaLaunchKernel call=0\nend\nkernel last us=5\nsync device\n"


def notes(trace: Trace) -> list[str]:
    return [note for note in trace.notes if "a CUDA graph was captured" in note]


def told(gpu, script: str) -> list[str]:
    seen = gpu.play(script, options=("--overhead-budget", "none"))
    assert seen.recorded.code == 0, seen.recorded.told
    return notes(seen.trace)


def test_much_kept_memory_is_said_once_with_its_end(gpu):
    explained, total = told(gpu, CAPTURE + launches(LAUNCHES))
    assert "seen with CUDA 13.0" in explained and "inferscope.start()" in explained
    assert f"about {LAUNCHES + 1} kernels" in total and "61.0 MiB" in total


@pytest.mark.parametrize("before", [BUILT, launches(LAUNCHES) + CAPTURE], ids=["built", "later"])
def test_without_a_capture_before_the_launches_nothing_is_said(gpu, before):
    assert told(gpu, before + launches(LAUNCHES if "Capture" not in before else 1000)) == []


@pytest.mark.parametrize("late", [True, False], ids=["late", "before"])
def test_a_recording_that_begins_after_the_capture_has_nothing_to_say(gpu, late):
    """It is what the words advise; one that sees the capture says them as `inferscope run` does."""
    program = gpu.python(f"""
        import inferscope, sys
        assert driver.cuInit(0) == 0
        do({(CAPTURE if late else "")!r})
        inferscope.start(output=sys.argv[1], overhead_budget="none")
        do({("" if late else CAPTURE)!r} + {launches(LAUNCHES)!r})
        inferscope.stop()
    """)
    env = gpu.environment("", gpu.libraries.cupti("13.0"))
    folder = gpu.folder / "trace"
    done = subprocess.run([sys.executable, program, folder], env=env, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    seen = Trace(folder)
    assert any(
        collector["name"] == "gpu" and collector["state"] == "on"
        for collector in seen.manifest["processes"][0]["collectors"]
    )
    assert len(notes(seen)) == (0 if late else 2)
