"""`track`, `monitor`, `query` and `info` on real programs: what they used is there, their exits are unchanged, and one
that dies of memory is explained."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import INFERSCOPE, PATIENCE_S, environment, memory_group
from recording import inferscope as run_command

GROWS = """
    import sys, time
    held = []
    for _ in range(12):
        held.append(bytearray(8 << 20))
        time.sleep(0.03)
    sys.exit(7)
"""

MIB = 1 << 20


def inferscope(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    done = run_command(*arguments, **options)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def events(folder: Path, *options: object) -> list[dict]:
    done = inferscope("query", "events", folder, "--format", "json", "--limit", "100000", *options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_command_is_tracked_and_its_exit_is_its_own(script, tmp_path):
    folder = tmp_path / "telemetry"
    done = inferscope("track", "--interval", "0.02", "--output", folder, "--", "python3", script(GROWS))
    assert done.returncode == 7
    found = events(folder)
    assert [found[0]["event_type"], found[-1]["event_type"]] == ["start", "stop"]
    samples = [event for event in found if event["event_type"] == "sample"]
    held = [event["metadata"]["process_bytes"] for event in samples]
    assert max(held) > 60 * MIB > min(held)
    assert all(event["device_used_bytes"] <= event["device_total_bytes"] for event in samples)
    assert len({event["pid"] for event in samples}) == 1 and samples[0]["pid"] > 0
    summary = json.loads(inferscope("query", "summary", folder, "--by", "device", "--format", "json").stdout)
    assert summary[0]["name"] == "host" and summary[0]["events"] == len(found)


def test_what_was_written_is_read_again_in_every_form(script, tmp_path):
    folder = tmp_path / "telemetry"
    inferscope("track", "--interval", "0.02", "--output", folder, "--", "python3", script(GROWS))
    exported = tmp_path / "events.jsonl"
    exported.write_text("".join(json.dumps(event) + "\n" for event in events(folder)), encoding="utf-8")
    assert events(exported) == events(folder)
    table = inferscope("query", "events", folder, "--type", "sample", "--format", "csv").stdout.splitlines()
    assert table[0].startswith("timestamp_ns,event_type") and len(table) > 3


def test_analyze_shows_telemetry_with_its_alerts(script, tmp_path):
    folder = tmp_path / "telemetry"
    options = ("--interval", "0.02", "--warn", "0.01%", "--critical", "off", "--output", folder)
    inferscope("track", *options, "--", "python3", script(GROWS))
    shown = inferscope("analyze", folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("Memory telemetry:") and "memory never ran out" in shown.stdout
    assert "warning (host" in shown.stdout
    told = json.loads(inferscope("analyze", folder, "--format", "json").stdout)
    assert told["sessions"][0]["events"] > 2 and {alert["event_type"] for alert in told["alerts"]} == {"warning"}
    refused = inferscope("analyze", folder, "--format", "html")
    assert refused.returncode == 2 and "--format json" in refused.stderr


def test_ranks_come_from_the_launcher(script, tmp_path):
    folder = tmp_path / "telemetry"
    environ = environment() | {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
    inferscope("track", "--output", folder, "--", "python3", script(GROWS), env=environ)
    assert {event["rank"] for event in events(folder)} == {3}
    assert inferscope("query", "events", folder, "--rank", "2", "--format", "json").stdout == ""


def test_a_running_process_and_the_machine_are_tracked(tmp_path):
    child = subprocess.Popen(["sleep", "1000"])
    try:
        folder = tmp_path / "telemetry"
        done = inferscope("track", "--pid", child.pid, "--duration", "0.3", "--interval", "0.05", "--output", folder)
        assert done.returncode == 0
        assert {event["pid"] for event in events(folder) if event["event_type"] == "sample"} == {child.pid}
    finally:
        child.kill()
        child.wait()
    shown = inferscope("monitor", "--duration", "0.2", "--interval", "0.05", cwd=tmp_path)
    assert "host memory" in shown.stderr and not (tmp_path / "inferscope-telemetry").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--warn", "95%", "--critical", "90%"), "must be below the critical one"),
        (("--warn", "lots"), "must be a share of memory"),
        (("--interval", "0.001"), "at least 0.01 seconds"),
        (("--pid", "1", "--", "true"), "cannot be used with"),
    ],
)
def test_options_that_contradict_are_refused(tmp_path, options, said):
    done = inferscope("track", *options, *(() if "--" in options else ("--", "true")), cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / "inferscope-telemetry").exists()


def test_a_folder_that_cannot_be_written_is_said_before_anything_starts(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = inferscope("track", "--output", blocked / "below", "--", "touch", tmp_path / "ran")
    assert done.returncode == 1 and "--output" in done.stderr and not (tmp_path / "ran").exists()


def test_damaged_and_foreign_files_are_named(tmp_path):
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"schema_version": 2}\n', encoding="utf-8")
    done = inferscope("query", "summary", wrong)
    assert done.returncode == 5 and "line 1: timestamp_ns is missing" in done.stderr
    (tmp_path / "empty").mkdir()
    assert inferscope("query", "summary", tmp_path / "empty").returncode == 5
    damaged = tmp_path / "damaged" / "x.telemetry"
    damaged.parent.mkdir()
    damaged.write_bytes(b"not telemetry at all")
    done = inferscope("query", "summary", damaged.parent)
    assert done.returncode == 5 and "damaged at byte 0" in done.stderr


@pytest.mark.serial
def test_a_death_by_memory_is_explained_and_holds_no_secret(script, tmp_path):
    program = script("""
        import time
        held = []
        while True:
            held.append(bytearray(1 << 20))
            time.sleep(0.002)
    """)
    folder = tmp_path / "telemetry"
    with memory_group(96 * MIB) as procs:
        command = [INFERSCOPE, "track", "--interval", "0.02", "--output", folder, "--", "python3", program]
        environ = environment() | {
            "MY_API_KEY": "do-not-keep-this",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        }
        done = subprocess.run(
            command,
            env=environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            preexec_fn=lambda: procs.write_text(str(os.getpid())),
        )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "its control group had no memory left (limit 96.0 MiB)" in done.stderr
    bundles = list(folder.glob("oom_dump_*_host_1"))
    assert len(bundles) == 1
    texts = {file.name: file.read_text(encoding="utf-8") for file in bundles[0].iterdir()}
    assert sorted(texts) == ["environment.json", "events.json", "manifest.json", "metadata.json"]
    assert not any("do-not-keep-this" in text for text in texts.values())
    assert "expandable_segments:True" in texts["environment.json"]
    metadata = json.loads(texts["metadata.json"])
    assert metadata["reason"] == "cgroup_oom" and metadata["last_sample"]["device_total_bytes"] == 96 * MIB
    assert any("It grew by" in sentence for sentence in metadata["post_mortem"])
    done = inferscope("query", "ooms", folder, "--format", "json")
    assert json.loads(done.stdout)["metadata"]["reason"] == "out_of_memory"


def test_a_kill_that_is_not_for_memory_is_not_explained_by_it(script, tmp_path):
    folder = tmp_path / "telemetry"
    killed = script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    done = inferscope("track", "--output", folder, "--", "python3", killed)
    assert done.returncode == -signal.SIGKILL
    assert not list(folder.glob("oom_dump_*")) and "no memory left" not in done.stderr


def test_info_tells_the_machine_without_starting_anything():
    done = inferscope("info")
    assert done.returncode == 0 and "This machine" in done.stdout and "GPUs" in done.stdout
    told = json.loads(inferscope("info", "--format", "json").stdout)
    assert told["cpu_count"] >= 1 and told["ram_total_bytes"] > told["ram_available_bytes"] > 0


def test_a_program_that_reads_the_stream_is_told_everything(tmp_path):
    said = [
        {"do": "event", "type": "phase_enter", "time_ns": 1, "collector": "mine", "context": "load"},
        {"do": "sample"},
        {"do": "event", "type": "party", "time_ns": 1, "collector": "mine"},
        {"do": "thresholds", "warning": 0.9, "critical": 0.5},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in said) + "nonsense\n"
    folder = tmp_path / "telemetry"
    # Seldom, so that there are two samples: the first, and the one that is asked for.
    options = ["--stream", "--interval", "3600", "--pid", os.getpid(), "--output", folder]
    done = inferscope("track", *options, input=lines.encode())
    assert done.returncode == 0, done.stderr
    streamed = [json.loads(line) for line in done.stdout.splitlines()]
    host = [event["event_type"] for event in streamed if event["device_id"] < 0]
    assert (host[0], sorted(host[1:-1]), host[-1]) == ("start", ["phase_enter", "sample", "sample"], "stop")
    assert streamed[-1]["metadata"]["requests_refused"] == 3
    assert events(folder) == streamed, "the files hold the same"


def test_a_stream_is_of_a_process_that_runs(tmp_path):
    done = inferscope("track", "--stream", "--", "true")
    assert done.returncode == 2 and "cannot be used with" in done.stderr
