"""Records programs whose memory is known (`tests/workloads/generate/memory_recipe.py`) as a user would, and says what
was said of each: `memory_seeds.py --seeds 0-23 --device cpu|gpu --output FILE.json`. Seeds from 10,000 on are for
reporting: each is looked at once, and reported_memory_seeds.txt keeps which were."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))

import memory_judge
from analysis import analyse
from generate.memory_recipe import memory_recipe, memory_row, memory_source
from generate.recipe import Recipe
from machine import inferscope, require_gpu
from seeds import FIRST_REPORTED, ended, numbers, repeated

REPORTED = Path(__file__).with_name("reported_memory_seeds.txt")
# Start-up, building the model and up to eighty requests; a loaded machine takes a few times as long.
RECORD_SECONDS = 90


def one(made: Recipe, fixed: bool, command: Path, environ: dict[str, str], folder: Path) -> dict[str, Any]:
    """Whatever goes wrong is a row, too."""
    row = memory_row(made)
    if fixed:
        row |= {"expect": memory_judge.HEALTHY, "accepted": [memory_judge.HEALTHY], "healthy": True}
    program, trace = folder / f"{made.name}.py", folder / made.name
    try:
        program.write_text(memory_source(made), encoding="utf-8")
        events = "all" if made.device == "cpu" else "gpu"
        words = [command, "run", "--quiet", "--output", trace, "--memory-events", events, "--", sys.executable]
        words += [program.name, *(["--fixed"] if fixed else [])]
        text = ended([*map(str, words)], folder, environ, RECORD_SECONDS)
        assert '{"requests"' in text, f"the program printed no result: {text[-400:]}"
        row |= memory_judge.told(analyse(command, trace, environ))
    except Exception as error:
        row["error"] = traceback.format_exc(limit=-2) if not isinstance(error, AssertionError) else str(error)
    return row


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", required=True, help="which ones: 3,7,20-29")
    options.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    options.add_argument("--budget-s", type=float, default=480, help="no program is begun after so many seconds")
    options.add_argument("--output", type=Path, help="write rows and totals here, as JSON")
    options.add_argument("--traces", type=Path, help="keep programs and traces in this folder")
    options.add_argument("--fixed", action="store_true", help="record each with its fix: then all are healthy")
    options.add_argument("--command", type=Path, help="the inferscope to run [default: of the wheel in dist/, or PATH]")
    options.add_argument("--hold", action="store_true", help="fail where a figure is not reached")
    options.add_argument("--again", action="store_true", help="seeds that were reported before, too")
    chosen = options.parse_args()
    wanted = numbers(chosen.seeds)
    before = repeated(wanted, REPORTED)
    if before and not chosen.again:
        raise SystemExit(f"already reported, and so not fresh: {before} (--again runs them nevertheless)")
    machine = "no GPU" if chosen.device == "cpu" else require_gpu("memory_seeds.py")
    command, environ = (chosen.command.resolve(), dict(os.environ)) if chosen.command else inferscope()
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    print(memory_judge.HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="inferscope-memory-seeds-") as temporary:
        folder = chosen.traces or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in wanted:
            if time.monotonic() - began > chosen.budget_s:
                print(f"the time was spent before seed {seed}", flush=True)
                break
            made = memory_recipe(seed, "cuda" if chosen.device == "gpu" else "cpu")
            rows.append(one(made, chosen.fixed, command, environ, folder))
            if seed >= FIRST_REPORTED and not repeated([seed], REPORTED):
                with REPORTED.open("a", encoding="utf-8") as file:
                    print(seed, file=file)
            print(memory_judge.line(rows[-1]), flush=True)
            if not chosen.traces:
                shutil.rmtree(folder / made.name, ignore_errors=True)
    found = memory_judge.totals(rows) | {"not_run": wanted[len(rows) :]}
    print(*memory_judge.table(found), sep="\n", flush=True)
    if chosen.output:
        document = {"machine": machine, "totals": found, "rows": rows}
        chosen.output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = memory_judge.missed(found) if chosen.hold else [f"failed: {seed}" for seed in found["failed"]]
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
