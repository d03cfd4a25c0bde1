"""`make suite-replay`: opens every recording of the suite that the repository holds (tests/traces/suite), runs the
diagnosis on it as it is now, and holds it to what was planted and to the gains that were measured when it was recorded.
Needs no GPU and no PyTorch. Ends with status 1 if a verdict is wrong or a figure is not reached."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import judge
import ranges
from analysis import analyse
from catalogue import Program, programs
from unpack import TRACES


def expected(traces: Path) -> list[Program]:
    """What was planted, and that each recording is there, of a program that is there and still plants the same."""
    rows = [Program.of(row) for row in json.loads((traces / "expected.json").read_text(encoding="utf-8"))]
    folders = {entry.name for entry in traces.iterdir() if entry.is_dir()}
    if odd := folders ^ {program.name for program in rows}:
        raise SystemExit(f"expected.json and the folders differ: {', '.join(sorted(odd))}")
    now = {program.name: program for program in programs()}
    for program in rows:
        if now.get(program.name) != program:
            raise SystemExit(f"{program.name}: its file says otherwise than expected.json; record it again")
    for name in sorted(set(now) - folders):
        print(f"not held to anything: {name} has no recording here yet")
    return rows


def command(given: str | None) -> Path:
    found = given or shutil.which("inferscope")
    if not found:
        raise SystemExit("no inferscope on PATH: say --command target/debug/inferscope")
    return Path(found)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", help="the inferscope to run [default: the one on PATH]")
    options.add_argument("--traces", type=Path, default=TRACES)
    options.add_argument("--only", default="", help="some programs, by name, with commas")
    options.add_argument("--verbose", action="store_true", help="the first findings of every program")
    chosen = options.parse_args()
    binary = command(chosen.command)
    wanted = {name for name in chosen.only.split(",") if name}
    rows = [program for program in expected(chosen.traces) if not wanted or program.name in wanted]
    measured = json.loads((chosen.traces / "suite.json").read_text(encoding="utf-8"))["measured"]
    misses = ranges.Misses(ranges.read())
    verdicts, differing = [], []
    for program in rows:
        analysis = analyse(binary, chosen.traces / program.name)
        verdict = judge.judge(program, analysis)
        verdicts.append(verdict)
        differing += [f"{program.name}: range of {line}" for line in ranges.differing(analysis, misses)]
        off = judge.error(verdict, measured.get(program.name))
        instead = "" if verdict.right else f" instead of {program.expect}"
        said = "" if off is None else f", gain off by {off:.1f} points"
        print(f"{'right' if verdict.right else 'WRONG'} {program.name}: {verdict.said}{instead}{said}")
        if chosen.verbose or not verdict.right:
            gained = measured.get(program.name, {}).get("gain_percent")
            print(f"      measured gain {gained}")
            for found in analysis["findings"][:5]:
                print(f"      {found['code']} {found['gain_percent']} {found['title'][:110]}")
    found = judge.figures(verdicts, measured)
    print("\nexpected → said:", *judge.matrix(verdicts), sep="\n")
    for name, value in found.items():
        print(f"{name}: {value}")
    wrong = [f"{one.program.name}: {one.said} instead of {one.program.expect}" for one in verdicts if not one.right]
    lines = wrong + differing + judge.missed(found) + ([] if wanted else judge.unmeasured(found))
    print(*(f"NOT REACHED: {line}" for line in lines), sep="\n") if lines else print("all reached")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
