"""What recording costs a model, told by the model alone: in one process it is recorded for a while and then not, in
turns, and its steps are held against those around them that were not recorded. So neither another process nor a machine
that changes its pace is in it. `floor`: the floor collector, in turns of half a second; `auto`, `2%` and the like:
`inferscope run` with that overhead budget, what the run paid on average, and the verdict; `none` for the verdict on
everything."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu import HERE, MODELS, libcupti, require_floor
from machine import ROOT, inferscope, require_gpu
from results import Results

# Steps so soon after a switch are CUPTI's doing.
SETTLE_NS = 50_000_000
WARM_UP_S = 2
KINDS = {"10": "kernels", "3": "kernels", "1": "copies", "2": "memsets"}
MARK = re.compile(r'"ts":([\d.]+).*"GPU recording (on|off)"')


class Turn(NamedTuple):
    what: str
    since: int
    until: int


def model(words: list[Any], name: str, seconds: int, environ: dict[str, str]) -> list[tuple[int, int]]:
    """When each step began and ended."""
    words = [*words, sys.executable, HERE / "workloads" / "gpu_cycles.py", name, WARM_UP_S, seconds]
    done = subprocess.run(
        list(map(str, words)), env=environ, stdout=subprocess.PIPE, text=True, timeout=seconds + 120, check=True
    )
    return [(begin, end) for begin, end in json.loads(done.stdout.splitlines()[-1])]


def floor_turns(log: Path) -> tuple[list[Turn], dict[str, dict[str, int]]]:
    """Also the records of each kind of turn."""
    lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines()]
    turns = [Turn(line[0], int(line[1]), int(after[1])) for line, after in itertools.pairwise(lines)]
    records: dict[str, dict[str, int]] = {}
    for what, _, *counts in lines:
        of = records.setdefault(what, {})
        for kind, count in (one.split(":") for one in counts):
            name = KINDS.get(kind, f"kind {kind}")
            of[name] = of.get(name, 0) + int(count)
    return turns, records


def budget_turns(command: Path, folder: Path, environ: dict[str, str], began: int, ended: int) -> list[Turn]:
    """By the marks that the collector leaves in the trace; without one everything was recorded."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    words = [str(command), "export", str(folder), "--format", "chrome"]
    marks: list[tuple[int, str]] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ) as export:
        assert export.stdout
        first = next(export.stdout)
        start = re.search(r'"start_unix_ns":"(\d+)"', first)
        assert start, first[:200]
        zero = int(start.group(1)) - manifest["clock"]["unix_minus_mono_ns"]
        for line in export.stdout:
            if '"recording-window"' in line and (mark := MARK.search(line)):
                marks.append((zero + round(float(mark.group(1)) * 1000), mark.group(2)))
    # Before the first switch it was the other way round.
    before = "all" if not marks or marks[0][1] == "off" else "off"
    points = [(began, before), *((at, "all" if word == "on" else "off") for at, word in sorted(marks)), (ended, "")]
    return [Turn(what, since, until) for (since, what), (until, _) in itertools.pairwise(points)]


def took(turns: list[Turn], steps: list[tuple[int, int]], usual: bool) -> list[tuple[str, float]]:
    """A step of each turn: the usual one, or the mean of all, with those in which CUPTI was switched."""
    found = []
    for turn in turns:
        since = turn.since + SETTLE_NS if usual else turn.since
        inside = [end - begin for begin, end in steps if begin >= since and end <= turn.until]
        if len(inside) >= 5:
            found.append((turn.what, statistics.median(inside) if usual else statistics.mean(inside)))
    return found


def against_off(turns: list[tuple[str, float]], what: str) -> list[float]:
    """Each turn of that kind against the nearest unrecorded ones on both sides of it."""
    ratios = []
    for at, (kind, step) in enumerate(turns):
        before = [other for kind, other in turns[:at] if kind == "off"][-1:]
        after = [other for kind, other in turns[at:] if kind == "off"][:1]
        if kind == what and before and after:
            ratios.append(step / statistics.mean(before + after))
    return sorted(ratios)


def words(ratios: list[float]) -> str:
    if not ratios:
        return "too few turns to tell"
    return f"{statistics.median(ratios):.4f} x off ({ratios[0]:.3f} to {ratios[-1]:.3f}, {len(ratios)} turns)"


def floor(name: str, seconds: int, folder: Path, results: Results) -> None:
    log = folder / "turns"
    injected = {"CUDA_INJECTION64_PATH": str(ROOT / "dist" / "floor_cupti.so"), "FLOOR_CUPTI": libcupti()}
    steps = model([], name, seconds, os.environ | injected | {"FLOOR_CYCLE": str(log)})
    turns, records = floor_turns(log)
    ratios = against_off(took(turns, steps, usual=True), "all")
    results.document["ratios"].setdefault(name, {})["floor"] = ratios
    results.say(f"{name:10} {'floor':5} {words(ratios)}; {records.get('all')}")


def verdict(command: Path, folder: Path, environ: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """The bottleneck with the first findings, and what tells two verdicts apart."""
    words = [str(command), "analyze", str(folder), "--format", "json"]
    said = json.loads(subprocess.run(words, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout)
    short = ", ".join([said["bottleneck"]["type"], *(finding["code"] for finding in said["findings"][:3])])
    return short, {part: said[part] for part in ("answer", "bottleneck", "findings", "abstentions")}


def budget(name: str, seconds: int, asked: str, folder: Path, results: Results) -> None:
    command, environ = inferscope()
    trace = folder / "trace"
    run = [command, "run", "--quiet", "--output", trace, "--overhead-budget", asked, "--"]
    steps = model(run, name, seconds, environ)
    turns = budget_turns(command, trace, environ, steps[0][0], steps[-1][1])
    ratios = against_off(took(turns, steps, usual=True), "all")
    means = against_off(took(turns, steps, usual=False), "all")
    whole = sum(turn.until - turn.since for turn in turns)
    share = sum(turn.until - turn.since for turn in turns if turn.what == "all") / whole
    # A run pays for every step, also for the unusual ones.
    paid = (statistics.median(means) - 1) * share * 100 if means else None
    said: dict[str, Any] = {"ratios": ratios, "means": means, "share": share, "paid_percent": paid}
    results.document["ratios"].setdefault(name, {})[asked] = said
    said["verdict"], said["analysis"] = verdict(command, trace, environ)
    says = f"by mean steps {words(means)}; the run paid {paid:.2f} %" if paid is not None else "nothing beside it"
    results.say(f"{name:10} {asked:11} {words(ratios)}; recorded {share * 100:.0f} % of the time: {says}")
    results.say(f"{'':10} verdict: {said['verdict']}")
    notes = json.loads((trace / "manifest.json").read_text(encoding="utf-8")).get("notes", [])
    for note in notes:
        results.say(f"{'':10} {note['text']}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", default=",".join(MODELS))
    options.add_argument("--variants", default="floor,auto,2%")
    options.add_argument("--seconds", type=int, default=25, help="of each model and variant")
    chosen = options.parse_args()
    results = Results("gpu-cycles", require_gpu("gpu-cycles"), False)
    require_floor()
    results.document["ratios"] = {}
    for name in chosen.models.split(","):
        for variant in chosen.variants.split(","):
            with tempfile.TemporaryDirectory(prefix="inferscope-gpu-cycles-") as folder:
                if variant == "floor":
                    floor(name, chosen.seconds, Path(folder), results)
                else:
                    budget(name, chosen.seconds, variant, Path(folder), results)
            results.save()
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
