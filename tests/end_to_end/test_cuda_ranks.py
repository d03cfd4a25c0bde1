"""The ranks of a distributed program, as torchrun starts them: one trace, in which each process has its rank and is
named by it, from three numbers of the environment and nothing else of it; one rank of it can be looked at alone."""

import json

import pytest
from fake_gpu import KERNEL
from recording import analyze, inferscope

WORK = "repeat 20\nkernel k us=5\nend\nsync device"
SECRET = "hf_not-for-anybody"


def ranks(gpu, count):
    """Each with the variables that torchrun gives it."""
    lines = [
        f"RANK={rank} LOCAL_RANK={rank} WORLD_SIZE={count} MASTER_ADDR=10.1.2.3 {gpu.app} &" for rank in range(count)
    ]
    return gpu.play(WORK, command=("sh", "-c", f"{' '.join(lines)} wait"), HF_TOKEN=SECRET)


def test_every_rank_is_in_the_trace_and_named(gpu):
    seen = ranks(gpu, 3)
    assert seen.recorded.code == 0, seen.recorded.told
    processes = seen.trace.manifest["processes"]
    for number in {row["process"] for row in seen.work(KERNEL)}:
        process = processes[number]
        assert process["world_size"] == 3 and process["rank"] == process["local_rank"], process
    assert sorted(process["rank"] for process in processes if "rank" in process) == [0, 1, 2]
    assert seen.kernels() == {"k": 60}
    shown = analyze(seen.trace)
    for rank in range(3):
        assert f"rank {rank} " in shown, shown
        assert f"rank {rank} " in seen.trace.report


def test_nothing_else_of_the_environment_is_kept(gpu):
    seen = ranks(gpu, 2)
    files = [file for file in seen.trace.folder.iterdir() if file.is_file()]
    assert len(files) > 3
    for file in files:
        content = file.read_bytes()
        assert SECRET.encode() not in content and b"10.1.2.3" not in content, file


def test_one_rank_can_be_looked_at_alone(gpu):
    trace = ranks(gpu, 2).trace
    one = trace.folder / "rank-1"
    shown = analyze(one)
    assert "rank 1 " in shown and "rank 0 " not in shown, shown
    assert "Only rank 1 of this recording" in shown, shown
    exported = inferscope("export", one, "--format", "chrome")
    assert exported.returncode == 0, exported.stderr.decode()
    events = json.loads(exported.stdout)["traceEvents"]
    named = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert any("rank 1 " in name for name in named) and not any("rank 0 " in name for name in named), named
    compared = inferscope("diff", trace.folder / "rank-0", one)
    assert compared.returncode == 0, compared.stderr.decode()
    missing = inferscope("analyze", trace.folder / "rank-7")
    assert missing.returncode == 5
    assert "no such rank, only 0, 1" in missing.stderr.decode()


def test_a_program_that_names_its_rank_itself(gpu):
    """As after torch.multiprocessing.spawn: the environment is set in Python, before CUDA is used."""
    program = gpu.python("""
        import os
        os.environ.update(RANK="1", WORLD_SIZE="4", LOCAL_RANK="1")
        driver.cuInit(0)
        do("kernel k us=5\\nsync device")
    """)
    seen = gpu.play("", command=("python", program))
    assert seen.recorded.code == 0, seen.recorded.told
    (process,) = [process for process in seen.trace.manifest["processes"] if process["python"]]
    assert (process["rank"], process["local_rank"], process["world_size"]) == (1, 1, 4)


@pytest.mark.parametrize("values", [{"RANK": "captain"}, {"RANK": "3"}, {"RANK": "4", "WORLD_SIZE": "4"}])
def test_other_variables_of_these_names_are_left_alone(gpu, values):
    seen = gpu.play(WORK, **values)
    assert seen.recorded.code == 0, seen.recorded.told
    assert not any("rank" in process for process in seen.trace.manifest["processes"])
