"""Judges recordings of generated programs again, with the diagnosis as it is now: `seeds_replay.py traces.tar.gz`, or a
folder like tests/traces/seeds. What was measured stays as it was. `--keep FOLDER` unpacks them for the repository."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import neutral
import seeds_judge
from analysis import analyse
from replay import command

# What `seeds.py` calls a machine that has none, and what hosts are called in the repository.
NO_GPU = "no GPU"
HOSTS = {NO_GPU: "two-cores"}
# In the repository's results.json: seeds whose first finding is wrong, and why. All others must stay right.
KNOWN_WRONG = "known_wrong"


def kept(source: Path, target: Path, seeds: set[int], most_bytes: int) -> None:
    """Rows and traces that are there are replaced; the smallest traces come first, until there are enough bytes."""
    target.mkdir(parents=True, exist_ok=True)
    document = json.loads((source / "results.json").read_text(encoding="utf-8"))
    there = target / "results.json"
    before = json.loads(there.read_text(encoding="utf-8")) if there.exists() else {"rows": []}
    rows = {row["seed"]: row for row in before["rows"]}
    total = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    new = [row for row in document["rows"] if (source / f"seed_{row['seed']}" / "manifest.json").exists()]
    for row in sorted(new, key=lambda row: size(source / f"seed_{row['seed']}")):
        folder = f"seed_{row['seed']}"
        if (seeds and row["seed"] not in seeds) or total + size(source / folder) > most_bytes:
            continue
        total += size(source / folder)
        shutil.rmtree(target / folder, ignore_errors=True)
        shutil.copytree(source / folder, target / folder)
        # What was recorded, should the generator change: to be read, and no source of the repository.
        for program in (target / folder).glob("seed_*.py"):
            program.rename(program.with_suffix(".txt"))
        neutral.trace(target / folder, HOSTS.get(document["machine"], "h200"))
        rows[row["seed"]] = row
    whole = {
        "machine": document["machine"],
        KNOWN_WRONG: before.get(KNOWN_WRONG, {}),
        "rows": [rows[seed] for seed in sorted(rows)],
    }
    there.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(rows)} traces in {target}, {total // 1024} KiB")


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def again(source: Path, binary: Path, seeds: set[int]) -> list[dict[str, Any]]:
    """The rows that have a trace, with what is said about it now. Without a GPU, what is about the machine comes first
    wherever others use it, too, and is right: there it is judged what is said of the program."""
    rows = []
    document = json.loads((source / "results.json").read_text(encoding="utf-8"))
    for row in document["rows"]:
        trace = source / f"seed_{row['seed']}"
        if "error" in row or not (trace / "manifest.json").exists() or (seeds and row["seed"] not in seeds):
            continue
        judged = row | seeds_judge.told(analyse(binary, trace))
        rows.append(seeds_judge.without_machine(judged) if document["machine"] == NO_GPU else judged)
        print(seeds_judge.line(rows[-1]), flush=True)
    return rows


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("recordings", type=Path, help="traces.tar.gz, or a folder of traces with results.json")
    options.add_argument("--command", help="the inferscope to run [default: the one on PATH]")
    options.add_argument("--only", default="", help="some seeds, with commas")
    options.add_argument("--keep", type=Path, help="unpack into this folder instead, with a Python that has pyarrow")
    options.add_argument("--least", action="append", default=[], help="fail below: first_right_percent=90")
    options.add_argument("--none", action="append", default=[], help="fail if any are: steps_of_a_library")
    options.add_argument("--hold", action="store_true", help="fail if a first finding is wrong that was right")
    options.add_argument("--most-bytes", type=int, default=4_000_000, help="what is kept is no larger")
    chosen = options.parse_args()
    only = {int(seed) for seed in chosen.only.split(",") if seed}
    with tempfile.TemporaryDirectory(prefix="inferscope-seeds-") as folder:
        source = chosen.recordings
        if source.is_file():
            with tarfile.open(source) as packed:
                packed.extractall(folder, filter="data")
            source = Path(folder)
        if not (source / "results.json").exists():
            raise SystemExit(f"{source} has no results.json: seeds.py writes it, --keep puts it there")
        if chosen.keep:
            kept(source, chosen.keep, only, chosen.most_bytes)
        else:
            rows = again(source, command(chosen.command), only)
            print(*seeds_judge.table(rows), sep="\n")
            known = json.loads((source / "results.json").read_text(encoding="utf-8")).get(KNOWN_WRONG, {})
            worse = chosen.hold and became_wrong(rows, known)
            return 1 if missed(seeds_judge.figures(rows), chosen.least, chosen.none) or worse else 0
    return 0


def became_wrong(rows: list[dict[str, Any]], known: dict[str, str]) -> bool:
    """Whether there are more than those that are known; those that have become right are said, too."""
    wrong = {str(row["seed"]) for row in rows if seeds_judge.verdict(row)["right"] is False}
    for seed in sorted(wrong - set(known), key=int):
        print(f"BECAME WRONG: {seed}")
    for seed in sorted(set(known) - wrong, key=int):
        print(f"right now, take it off {KNOWN_WRONG}: {seed} ({known[seed]})")
    return bool(wrong - set(known))


def missed(figures: dict[str, Any], least: list[str], none: list[str]) -> bool:
    """Whether a figure is not reached or was not measured, or some are of what must not be; each such is said."""
    lines = [f"NOT REACHED: {name} is {figures[name]}, to reach: none" for name in none if figures[name]]
    for one in least:
        name, _, value = one.partition("=")
        if figures[name] is None or figures[name] < float(value):
            lines.append(f"NOT REACHED: {name} is {figures[name]}, to reach: {value} or more")
    print(*lines, sep="\n", end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
