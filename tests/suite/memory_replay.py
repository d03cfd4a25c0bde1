"""Judges recordings of programs whose memory is known again, with the diagnosis as it is now: `memory_replay.py FOLDER`
of what `memory_seeds.py --traces FOLDER --output FOLDER/results.json` wrote. `--keep TARGET` is for the repository."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import memory_judge
import neutral
from analysis import analyse
from replay import command
from seeds import numbers

# What hosts are called in the repository.
HOST = "two-cores"


def kept(source: Path, target: Path, rows: list[dict[str, Any]], machine: str) -> None:
    """Rows and traces that are there are replaced."""
    target.mkdir(parents=True, exist_ok=True)
    there = target / "results.json"
    before = json.loads(there.read_text(encoding="utf-8"))["rows"] if there.exists() else []
    whole = {row["seed"]: row for row in [*before, *rows]}
    for row in rows:
        # What was said when it was recorded is history: what is said now is asked each time.
        whole[row["seed"]] = {key: value for key, value in row.items() if key not in ("findings", "silent", "steps")}
        name = f"seed_{row['seed']}"
        shutil.rmtree(target / name, ignore_errors=True)
        (target / name).mkdir()
        files = [*(source / name).glob("*.parquet"), source / name / "manifest.json"]
        for file in files:
            shutil.copy(file, target / name)
        # What was recorded, should the generator change: to be read, and no source of the repository.
        shutil.copy(source / f"{name}.py", target / name / f"{name}.txt")
        neutral.trace(target / name, HOST)
        size = sum(file.stat().st_size for file in (target / name).iterdir())
        print(f"{target / name}: {size // 1024} KiB")
    document = {"machine": machine, "rows": [whole[seed] for seed in sorted(whole)]}
    there.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("recordings", type=Path)
    options.add_argument("--command", help="the inferscope to run [default: the one on PATH]")
    options.add_argument("--only", default="", help="some seeds: 3,7,20-29")
    options.add_argument("--keep", type=Path, help="copy them into this folder instead, with a Python that has pyarrow")
    options.add_argument("--hold", action="store_true", help="fail if a first finding is wrong")
    chosen = options.parse_args()
    document = json.loads((chosen.recordings / "results.json").read_text(encoding="utf-8"))
    only = set(numbers(chosen.only))
    rows = [row for row in document["rows"] if "error" not in row and (not only or row["seed"] in only)]
    if chosen.keep:
        kept(chosen.recordings, chosen.keep, rows, document["machine"])
        return 0
    binary = command(chosen.command)
    print(memory_judge.HEAD)
    judged = []
    for row in rows:
        judged.append(row | memory_judge.told(analyse(binary, chosen.recordings / f"seed_{row['seed']}")))
        print(memory_judge.line(judged[-1]), flush=True)
    found = memory_judge.totals(judged)
    print(*memory_judge.table(found), sep="\n")
    if chosen.hold and (found["wrong"] or not judged):
        print(f"NOT REACHED: wrong are {found['wrong'] or 'none, for none was judged'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
