"""A recorded program that dies of memory leaves a bundle beside its trace and is explained; one that only looks like it
is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recording import INFERSCOPE, PATIENCE_S, REPOSITORY, environment, inferscope, memory_group

sys.path.insert(0, str(REPOSITORY / "tests" / "fake_torch"))

import fake_torch

MIB = 1 << 20
OUT_OF_MEMORY = 2
LOAD = """
    import os, sys
    cuda = ctypes.CDLL(sys.argv[1] + "/libc10_cuda.so") if sys.argv[1:] else None
"""
FAILS = f"do('malloc bytes={70 << 30} address=0x7f00001000 error={OUT_OF_MEMORY}')\n    "


def bundles(folder: Path) -> list[Path]:
    return sorted(folder.glob("oom_dump_*"))


def read(bundle: Path) -> dict[str, dict]:
    assert sorted(file.name for file in bundle.iterdir()) == [
        "environment.json",
        "events.json",
        "manifest.json",
        "metadata.json",
    ]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in bundle.iterdir()}


def play(gpu, text: str, *command: object, **more):
    """The libraries of PyTorch, where there are any, are loaded before CUDA starts, as PyTorch does."""
    program = gpu.python(LOAD + "\n    assert driver.cuInit(0) == 0" + text)
    return gpu.play("", command=(program, *command), **more)


def test_a_request_that_the_driver_refuses_is_explained(gpu, tmp_path):
    seen = play(
        gpu,
        f"""
    do("malloc bytes={3 << 20} address=0x7e00000000")
    {FAILS}raise RuntimeError("CUDA out of memory")
    """,
        MY_API_KEY="do-not-keep-this",
        PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64",
    )
    assert seen.recorded.code == 1
    said = seen.recorded.told
    assert "the CUDA driver refused 70.0 GiB on GPU 0" in said, said
    assert "this process had taken 3.00 MiB from the driver" in said
    assert "--memory-events gpu" in said
    (bundle,) = bundles(tmp_path)
    assert bundle.name.endswith("_cuda_1")
    files = read(bundle)
    assert files["metadata"]["reason"] == "gpu_out_of_memory"
    request = files["metadata"]["failed_request"]
    assert (request["bytes"], request["asked_of"], request["driver_taken_bytes"]) == (70 << 30, "driver", 3 * MIB)
    assert files["environment"]["variables"] == {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
    assert not any("do-not-keep-this" in file.read_text() for file in bundle.iterdir())
    assert all(sentence in said for sentence in files["metadata"]["post_mortem"])
    done = inferscope("query", "ooms", bundle / "events.json", "--format", "json")
    (error,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert error["metadata"]["requested_bytes"] == 70 << 30


@pytest.fixture(scope="session")
def torch(tmp_path_factory):
    return fake_torch.build(tmp_path_factory.mktemp("torch"))


def test_holes_holders_and_the_setting_that_would_have_served_it(gpu, torch, tmp_path):
    """Eight segments of 20 MiB with two blocks of 9 MiB each: 16 MiB are free, in pieces of 2 MiB."""
    seen = play(
        gpu,
        f"""
    import inferscope
    cuda.c10_cuda_block.argtypes = (ctypes.c_uint64, ctypes.c_int64, ctypes.c_int)
    cuda.c10_cuda_fail.argtypes = (ctypes.c_int64, ctypes.c_int)
    for step in range(3):
        with inferscope.step("request"):
            do("kernel k us=20\\nsync device")
    for segment in range(8):
        base = 0x7e00000000 + (segment << 30)
        do(f"malloc bytes={{20 << 20}} address={{base:#x}}")
        cuda.c10_cuda_reserved(ctypes.c_size_t((segment + 1) * (20 << 20)), 0)
        cuda.c10_cuda_block(base, 9 << 20, 0)
        cuda.c10_cuda_block(base + (9 << 20), 9 << 20, 0)
    do("malloc bytes={20 << 20} address=0x10 error={OUT_OF_MEMORY}")
    cuda.c10_cuda_fail(16 << 20, 0)
    sys.exit(1)
    """,
        torch,
        options=("--memory-events", "gpu"),
    )
    assert seen.recorded.code == 1
    said = seen.recorded.told
    assert "PyTorch's allocator could not get 16.0 MiB on GPU 0" in said, said
    assert "16.0 MiB was free in 8 holes, the largest 2.00 MiB: enough in all, but in no piece" in said
    assert "By use: 144 MiB in 16 blocks" in said
    assert "at run time, after 3 steps" in said
    assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would have served it" in said
    (bundle,) = bundles(tmp_path)
    request = read(bundle)["metadata"]["failed_request"]
    assert (request["holes"], request["largest_hole_bytes"]) == (8, 2 * MIB)
    assert request["setting_that_would_serve"] == "expandable_segments:True"


@pytest.mark.parametrize(
    ("after", "code", "known"),
    [
        ("do('malloc bytes=4096 address=0x7e00000000'); sys.exit(3)", 3, True),
        ("os.kill(os.getpid(), 15)", -15, True),
        ("sys.exit(0)", 0, False),
    ],
)
def test_a_program_that_goes_on_did_not_die_of_it(gpu, tmp_path, after, code, known):
    seen = play(gpu, f"\n    {FAILS}{after}")
    assert seen.recorded.code == code
    said = seen.recorded.told
    assert not bundles(tmp_path) and "Out of GPU memory" not in said
    assert ("whether it ended because of it is not known" in said) == known, said


def test_an_exception_that_only_mentions_memory_is_no_proof(gpu, tmp_path):
    seen = play(
        gpu,
        """
    do("malloc bytes=4096 address=0x7e00000000")
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
    """,
    )
    assert seen.recorded.code == 1
    ours = [line for line in seen.recorded.told.splitlines() if line.startswith("inferscope:")]
    assert not bundles(tmp_path) and not any("memory" in line.lower() for line in ours), ours


def recorded_in_group(limit: int, trace: Path, *command: object) -> subprocess.CompletedProcess[str]:
    with memory_group(limit) as procs:
        return subprocess.run(
            [INFERSCOPE, "run", "--output", trace, "--", *map(str, (*command, procs.parent))],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            preexec_fn=lambda: procs.write_text(str(os.getpid())),
        )


@pytest.mark.serial
def test_what_the_kernel_kills_for_memory_is_explained(script, trace, tmp_path):
    program = script("""
        import time
        held = []
        while True:
            held.append(bytearray(1 << 20))
            time.sleep(0.002)
    """)
    done = recorded_in_group(384 * MIB, trace, "python3", program)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "The kernel killed it: its control group had no memory left (limit 384 MiB)" in done.stderr, done.stderr
    (bundle,) = bundles(tmp_path)
    assert bundle.name.endswith("_host_1") and (trace / "report.md").is_file()
    files = read(bundle)
    assert files["metadata"]["reason"] == "cgroup_oom" and files["metadata"]["failed_request"] is None
    assert files["metadata"]["last_sample"]["device_total_bytes"] == 384 * MIB
    assert any("It grew by" in sentence for sentence in files["metadata"]["post_mortem"])


@pytest.mark.serial
def test_a_kill_while_memory_is_full_is_said_with_who_it_was_not(script, trace, tmp_path):
    program = script("""
        import os, signal, sys, time
        from pathlib import Path
        trace, group = map(Path, sys.argv[1:])
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        if not (group / names[0]).exists():
            names = ("memory.max", "memory.current", "inactive_file ")
        def used():
            stat = (group / "memory.stat").read_text().splitlines()
            inactive = sum(int(line[len(names[2]):]) for line in stat if line.startswith(names[2]))
            return int((group / names[1]).read_text()) - inactive
        limit, held = int((group / names[0]).read_text()), []
        def fill():
            while used() < limit * 0.94:
                held.append(bytearray(1 << 20))
        fill()
        # The recorder writes files about once a second, and has looked at memory several times in between.
        written = lambda: {file.name for file in trace.glob("counters.*")}
        before, since = written(), set()
        while len(since) < 2:
            since |= written() - before
            fill()
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = recorded_in_group(768 * MIB, trace, "python3", program, trace)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "of the memory was in use, and not by the kernel's OOM killer" in done.stderr, done.stderr
    (bundle,) = bundles(tmp_path)
    assert read(bundle)["manifest"]["reason"] == "killed_while_memory_full"


def test_a_kill_for_something_else_is_not_explained_by_memory(record, script, tmp_path):
    done = record(script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert done.code == -signal.SIGKILL and not bundles(tmp_path)
    assert "OOM" not in done.told and "memory left" not in done.told


def test_a_bundle_beside_traces_is_taken_for_none(tmp_path, script):
    program = script("pass")
    assert inferscope("run", "--", program, cwd=tmp_path).returncode == 0
    bundle = tmp_path / "inferscope-traces" / "oom_dump_20261118T141530Z_1_host_1"
    bundle.mkdir()
    (bundle / "manifest.json").write_text("{}", encoding="utf-8")
    done = inferscope("analyze", cwd=tmp_path)
    assert done.returncode == 0 and b"oom_dump" not in done.stderr, done.stderr


def test_diagnose_writes_a_folder_and_fails_on_a_risk(gpu, trace, tmp_path):
    play(gpu, f"\n    do('malloc bytes=4096 address=0x7e00000000')\n    {FAILS}sys.exit(1)")
    folder = tmp_path / "diagnosis"
    done = inferscope("diagnose", trace, "--output", folder, "--fail-on", "risk")
    assert done.returncode == 3 and b"memory ran out" in done.stdout, done.stderr
    assert sorted(file.name for file in folder.iterdir()) == [
        "diagnostic_summary.json",
        "environment.json",
        "manifest.json",
        "report.json",
        "telemetry_timeline.json",
    ]
    summary = json.loads((folder / "diagnostic_summary.json").read_text(encoding="utf-8"))
    assert (summary["backend"], summary["peak_bytes"], summary["num_ooms"]) == ("cuda", 4096, 1)
    assert summary["risk_flags"] == {
        "oom_occurred": True,
        "high_utilization": False,
        "fragmentation_warning": False,
    }
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["analysis_version"]
    again = inferscope("diagnose", trace, "--output", folder)
    assert again.returncode == 1 and b"it is there already" in again.stderr


def test_diagnose_of_telemetry_without_a_risk_is_fine(script, tmp_path):
    telemetry = tmp_path / "telemetry"
    # Long enough for some samples: the first may come before there is anything to read.
    program = script("import time; held = bytearray(8 << 20); time.sleep(0.5)")
    options = ("--interval", "0.02", "--warn", "off", "--critical", "off", "--output", telemetry)
    assert inferscope("track", *options, "--", "python3", program).returncode == 0
    folder = tmp_path / "diagnosis"
    done = inferscope("diagnose", telemetry, "--output", folder)
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / "diagnostic_summary.json").read_text(encoding="utf-8"))
    assert summary["backend"] == "host" and summary["num_ooms"] == 0
    events = json.loads((folder / "telemetry_timeline.json").read_text(encoding="utf-8"))["events"]
    assert events[0]["event_type"] == "start" and events[-1]["event_type"] == "stop"


def test_diagnose_of_a_recording_without_gpu_memory_says_so(record, script, trace, tmp_path):
    record(script("pass"))
    done = inferscope("diagnose", trace, "--output", tmp_path / "diagnosis")
    assert done.returncode == 5 and b"no GPU memory in it" in done.stderr
    assert not (tmp_path / "diagnosis").exists()
