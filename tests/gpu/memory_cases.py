"""What is checked of memory on a real GPU: each case records a program of `workloads/memory.py`, compares what was
recorded with what the program, PyTorch or NVML say, and returns its figures."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import run
from typing import Any

from case import Case, Done, equal

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"
Figures = dict[str, Any]


@dataclass
class Memory:
    """A case: where it records, and what it found so far, which is kept if it fails later."""

    case: Case
    # Of the live set: how long the program runs.
    seconds: int
    figures: Figures = field(default_factory=dict)

    def record(self, name: str, what: str, number: int = 0, *options: str, **environ: str) -> Done:
        words = self.case.python("memory.py", what, number)
        folder = self.case.folder / name
        command = [str(self.case.command), "run", "--output", str(folder), "--memory-events", "gpu", *options, "--"]
        done = self.case.run([*command, *words], **environ)
        self.figures["exit"] = done.code
        return done

    def analysis(self, what: Path | str) -> dict[str, Any]:
        words = [str(self.case.command), "analyze", str(what), "--format", "json"]
        said = run(words, capture_output=True, text=True, env=self.case.environ, timeout=240)
        assert said.returncode == 0, f"analyze: {said.stderr[-800:]}"
        return json.loads(said.stdout)

    def recorded(self, name: str) -> dict[str, Any]:
        return self.analysis(self.case.folder / name)

    def bundle(self, name: str) -> tuple[Path, dict[str, Any]] | None:
        found = sorted(self.case.folder.glob(f"{name}*/oom_dump_*")) + sorted(self.case.folder.glob("oom_dump_*"))
        return (found[-1], json.loads((found[-1] / "metadata.json").read_text("utf-8"))) if found else None


def within(found: float, expected: float, most: float, what: str) -> None:
    assert abs(found - expected) <= most, f"{what}: {found}, expected {expected} (± {most})"


def allocator_of(analysis: dict[str, Any], pid: int) -> dict[str, Any]:
    found = [one for one in analysis.get("memory") or [] if one["pid"] == pid and one["device"] is not None]
    assert found, f"no allocator of process {pid}: {notes(analysis)}"
    return found[0]


def attribution(analysis: dict[str, Any]) -> dict[str, Any]:
    found = analysis.get("memory_attribution") or []
    assert found, f"memory of the device is attributed to nothing: {notes(analysis)}"
    return found[0]


def notes(analysis: dict[str, Any]) -> str:
    lines = analysis.get("health", {}).get("lines") or analysis.get("health", {})
    return json.dumps(lines)[:1500]


def parts(found: dict[str, Any], pid: int, names: tuple[str, ...], which: str = "end_bytes") -> int:
    return sum(one[which] for one in found["parts"] if one["part"] in names and one["pid"] in (pid, None))


def explained_oom(memory: Memory) -> None:
    """The death is explained, and the program runs with the setting that the simulation names."""
    done = memory.record("oom", "oom")
    known = done.known
    assert done.code == 1, f"exit {done.code}: {done.err[-800:]}"
    assert "OutOfMemoryError" in done.err, f"PyTorch did not run out of memory: {done.err[-800:]}"
    found = memory.bundle("oom")
    assert found, f"no bundle: {done.err[-1200:]}"
    _, metadata = found
    said = " ".join(metadata["post_mortem"])
    memory.figures["post_mortem"] = metadata["post_mortem"]
    equal(metadata["reason"], "gpu_out_of_memory", "reason")
    request = metadata["failed_request"]
    memory.figures["failed_request"] = {key: request.get(key) for key in list(request)[:30]}
    assert "200 MiB" in said, f"what was asked is missing: {said}"
    assert str(known["pid"]) in said, f"whose request it was is missing: {said}"
    assert EXPANDABLE in said, f"the setting that serves the request was not found: {said}"
    again = memory.record("oom-fixed", "oom", 0, PYTORCH_CUDA_ALLOC_CONF=EXPANDABLE, PYTORCH_ALLOC_CONF=EXPANDABLE)
    memory.figures["exit_with_the_setting"] = again.code
    equal(again.code, 0, f"exit with {EXPANDABLE} ({again.err[-800:]})")
    equal(again.known.get("served"), True, "the request was served")
    assert memory.bundle("oom-fixed") in (None, found), "a bundle of a program that went well"


def killed(memory: Memory) -> None:
    """What was held when SIGKILL came, to the byte; and no word of memory having run out."""
    done = memory.record("killed", "killed", 60)
    assert done.code in (-signal.SIGKILL, 128 + signal.SIGKILL), f"exit {done.code}: {done.err[-800:]}"
    known, analysis = done.known, memory.recorded("killed")
    own = allocator_of(analysis, known["pid"])
    memory.figures |= {"in_use": own["in_use_bytes"], "allocated": known["allocated"]}
    equal(own["in_use_bytes"], known["allocated"], "in use when it was killed")
    equal(own["peak_in_use_bytes"], known["peak"], "peak")
    found = memory.bundle("killed")
    assert not found or found[1]["reason"] != "gpu_out_of_memory", f"it did not run out of memory: {found}"


def sleep_wake(memory: Memory) -> None:
    """A hundred times created, mapped, unmapped and released: within 2 MiB of NVML's change."""
    cycles = 100
    done = memory.record("sleep", "sleep", cycles)
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known, found = done.known, attribution(memory.recorded("sleep"))
    own = ("driver",)
    end, peak = parts(found, known["pid"], own), parts(found, known["pid"], own, "peak_bytes")
    changes = {name: known[name] - known["before"] for name in ("asleep", "awake", "end")}
    memory.figures |= {"nvml_changes": changes, "recorded_end": end, "recorded_peak": peak, "cycles": cycles}
    within(changes["asleep"], 0, 2 * MIB, "NVML after the last sleep")
    within(end, changes["end"], 2 * MIB, "recorded at the end, against NVML's change")
    within(peak, changes["awake"], 2 * MIB, "recorded when awake, against NVML's change")


def expandable_segments(memory: Memory) -> None:
    done = memory.record("expandable", "expandable", 100, PYTORCH_CUDA_ALLOC_CONF=EXPANDABLE)
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known, analysis = done.known, memory.recorded("expandable")
    own, found = allocator_of(analysis, known["pid"]), attribution(analysis)
    grown = known["end"] - known["before"]
    held = parts(found, known["pid"], ("torch_in_use", "torch_cached", "driver")) - known["reserved_before"]
    memory.figures |= {"nvml_change": grown, "recorded_change": held, "reserved": own["reserved_bytes"]}
    equal(own["in_use_bytes"], known["allocated"], "in use at the end")
    within(held, grown, 2 * MIB, "recorded at the end, against NVML's change")


def attribution_sums(memory: Memory) -> None:
    """Every byte that NVML counts is in one part, within 1 %."""
    done = memory.record("everything", "everything")
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known, found = done.known, attribution(memory.recorded("everything"))
    memory.figures |= {key: found.get(key) for key in ("abstained", "largest_gap_percent", "samples", "level")}
    memory.figures["parts"] = {f"{one['part']}:{one['pid']}": one["end_bytes"] for one in found["parts"]}
    memory.figures["nvml"] = {key: known[key] for key in ("used", "own", "listed", "own_pid_listed")}
    assert found["abstained"] is None, f"nothing is attributed: {found['abstained']}"
    end = sum(one["end_bytes"] for one in found["parts"])
    within(end, known["used"], 0.01 * known["used"], "all parts at the end, against NVML")
    assert found["largest_gap_percent"] <= 1, f"parts and NVML differ by {found['largest_gap_percent']} %"
    within(parts(found, known["pid"], ("torch_in_use",)), known["allocated"], 0, "PyTorch's blocks")
    cached = known["reserved"] - known["allocated"]
    within(parts(found, known["pid"], ("torch_cached",)), cached, 0, "PyTorch's cache")
    beside = parts(found, known["pid"], ("driver",)) - known["raw"] - known["virtual"]
    memory.figures["driver_beside_what_the_program_knows"] = beside
    assert 0 <= beside <= 64 * MIB, f"allocated beside PyTorch: {beside} bytes more than the program knows of"


def raw_leak(memory: Memory) -> None:
    """1 GiB by cudaMalloc, of which PyTorch knows nothing: found, with its size."""
    done = memory.record("raw_leak", "raw_leak", 32)
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known, analysis = done.known, memory.recorded("raw_leak")
    held = parts(attribution(analysis), known["pid"], ("driver",))
    codes = [one["code"] for one in analysis["findings"]]
    own = [one for one in analysis["findings"] if one["code"] == "hidden-memory"]
    memory.figures |= {"leaked": known["leaked"], "nvml_grown": known["grown"], "recorded": held, "findings": codes}
    within(held, known["leaked"], 64 * MIB, "outside PyTorch at the end")
    assert own, f"no finding: {codes} {[one for one in analysis['abstentions'] if 'memory' in one['code']]}"
    memory.figures["title"] = own[0]["title"]
    memory.figures["where"] = own[0]["where"]
    blamed = [one["title"] for one in analysis["findings"] if one["code"] == "leak"]
    assert not blamed, f"PyTorch's allocator is blamed: {blamed}"


def live_set(memory: Memory) -> None:
    """What is alive, against `memory_stats`, with windows on: 0 bytes off."""
    done = memory.record("live_set", "live_set", memory.seconds, "--overhead-budget", "2%")
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known, analysis = done.known, memory.recorded("live_set")
    own = allocator_of(analysis, known["pid"])
    ours = {name: own[name] for name in ("in_use_bytes", "reserved_bytes", "peak_in_use_bytes", "allocs", "frees")}
    memory.figures |= {"rounds": known["rounds"], "ours": ours, "theirs": known["allocated"]}
    memory.figures["bytes_off"] = own["in_use_bytes"] - known["allocated"]
    equal(own["in_use_bytes"], known["allocated"], "in use")
    equal(own["reserved_bytes"], known["reserved"], "reserved")
    equal(own["peak_in_use_bytes"], known["peak"], "peak")


def torch_snapshot(memory: Memory) -> None:
    done = memory.case.run(memory.case.python("memory.py", "snapshot"))
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known = done.known
    analysis = memory.analysis(known["file"])
    shutil.rmtree(Path(known["file"]).parent)
    own = next(one for one in analysis["memory"] if one["device"] == 0)
    memory.figures |= {"in_use": own["in_use_bytes"], "allocated": known["allocated"], "simulated": own["simulated"]}
    equal(own["end"]["active_bytes"], known["allocated"], "in use")
    equal(own["reserved_bytes"], known["reserved"], "reserved")
    assert own["end_by_place"] and own["end_by_place"][0]["line"], f"nobody holds it: {own['end_by_place'][:2]}"


def torch_collectors(memory: Memory) -> None:
    done = memory.case.run(memory.case.python("memory.py", "collectors"))
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known = done.known
    memory.figures |= known["ours"]
    equal(known["ours"]["allocated_bytes"], known["allocated"], "allocated")
    equal(known["ours"]["reserved_bytes"], known["reserved"], "reserved")


def jax_collectors(memory: Memory) -> None:
    done = memory.case.run(memory.case.python("memory.py", "jax"))
    equal(done.code, 0, f"exit ({done.err[-800:]})")
    known = done.known
    memory.figures |= known
    if "missing" in known or known["platform"] == "cpu":
        memory.figures["not_tried"] = known.get("missing") or f"JAX uses the {known['platform']} here"
        return
    equal(known["ours"], known["theirs"], "bytes in use, against JAX's own")
    assert known["ours"] >= known["held"], f"{known['ours']} bytes, {known['held']} are held"


def allocator_cost(memory: Memory) -> None:
    """How much an event costs: a figure, which no check can hold on a machine of others."""
    words = memory.case.python("memory.py", "allocator_cost", 20_000)
    folder = memory.case.folder

    def recorded(name: str, *options: str) -> list[str]:
        return [str(memory.case.command), "run", "--quiet", "--output", str(folder / name), *options, "--", *words]

    ways = {"plain": words, "without": recorded("cost-none"), "with": recorded("cost", "--memory-events", "gpu")}
    for name, command in ways.items():
        done = memory.case.run(command)
        equal(done.code, 0, f"exit, {name} ({done.err[-800:]})")
        memory.figures[f"{name}_pair_ns"] = round(done.known["pair_ns"])
    memory.figures["event_ns"] = round((memory.figures["with_pair_ns"] - memory.figures["without_pair_ns"]) / 2)


def seeds(memory: Memory) -> None:
    """Generated programs with a planted fault of memory, or none (`tests/suite/memory_seeds.py`)."""
    script = Path(__file__).resolve().parents[1] / "suite" / "memory_seeds.py"
    assert script.is_file(), f"{script.name} is missing"
    target = memory.case.folder / "seeds.json"
    words = [sys.executable, str(script), "--seeds", "0-23", "--device", "gpu", "--budget-s", "330"]
    done = run([*words, "--output", str(target)], capture_output=True, text=True, env=memory.case.environ, timeout=400)
    found = json.loads(target.read_text("utf-8")) if target.is_file() else {}
    memory.figures |= {"table": done.stdout[-6000:].splitlines(), **found.get("totals", {})}
    equal(done.returncode, 0, f"exit ({done.stderr[-800:]})")


# With the seconds after which it is ended.
CASES: dict[str, tuple[Callable[[Memory], None], int]] = {
    "oom": (explained_oom, 120),
    "killed": (killed, 90),
    "sleep": (sleep_wake, 90),
    "expandable": (expandable_segments, 90),
    "attribution": (attribution_sums, 90),
    "raw-leak": (raw_leak, 90),
    "snapshot": (torch_snapshot, 60),
    "torch-collectors": (torch_collectors, 60),
    "jax-collectors": (jax_collectors, 120),
    "allocator-cost": (allocator_cost, 150),
    "live-set": (live_set, 420),
    "seeds": (seeds, 420),
}
