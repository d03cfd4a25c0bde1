"""Writes what the diagnosis widens its gains by (crates/diagnosis/src/calibration/measured.csv) from the suite's and
generated programs' recordings and the gains measured with them: `calibrate.py traces.tar.gz ... --write`. Seeds from
10,000 on are for reporting and refused. Says what the ranges would have held with each program left out in turn, as
ranges.py does of the table as it is."""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import judge
import seeds_judge
from analysis import analyse
from ranges import TABLE, Fix, left_out, table
from replay import command, expected
from seeds import FIRST_REPORTED
from seeds_replay import again
from unpack import TRACES


def fixes(row: dict[str, Any]) -> list[Fix]:
    """What was promised, as the recording alone gave it, where the first finding is right."""
    first = judge.first(row) if "error" not in row else None
    gain = first.get("gain_percent") if first else None
    if first is None or gain is None:
        return []
    low, mid, high = gain["derived"] or (gain["low"], gain["mid"], gain["high"])
    pairs = zip(row["accepted"], seeds_judge.gains(row), strict=True)
    measured = next((measured for codes, measured in pairs if first["code"] in codes and measured is not None), None)
    if measured is None or mid <= 0:
        return []
    return [Fix(gain["change"], (low, mid, high), measured, str(row["seed"]))]


def of_suite(binary: Path) -> list[Fix]:
    """The same of the suite's own recordings."""
    measured = json.loads((TRACES / "suite.json").read_text(encoding="utf-8"))["measured"]
    found = []
    for program in expected(TRACES):
        row = {
            "seed": program.name,
            "faults": [program.expect],
            "accepted": [program.accepted],
            "measured": {"gains": [measured.get(program.name, {}).get("gain_percent")]},
        }
        found += fixes(row | seeds_judge.told(analyse(binary, TRACES / program.name)))
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("recordings", type=Path, nargs="+", help="traces.tar.gz of seeds.py")
    options.add_argument("--command", help="the inferscope to run [default: the one on PATH]")
    options.add_argument("--write", action="store_true", help="write the table, not only what it would hold")
    chosen = options.parse_args()
    known = of_suite(command(chosen.command))
    for archive in chosen.recordings:
        with tempfile.TemporaryDirectory(prefix="inferscope-seeds-") as folder:
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
            for row in again(Path(folder), command(chosen.command), set()):
                if row["seed"] >= FIRST_REPORTED:
                    raise SystemExit(f"seed {row['seed']} is for reporting: nothing is tuned on it")
                known += fixes(row)
    known.sort(key=lambda fix: (fix.change, fix.promised[1], fix.program))
    if len(known) < 2:
        raise SystemExit("too few fixes were found and measured")
    lines = [
        ",".join([fix.change, *(f"{one:.2f}" for one in (*fix.promised, fix.measured)), fix.program]) for fix in known
    ]
    print(*lines, *table(left_out(known)), sep="\n")
    if chosen.write:
        TABLE.write_text("\n".join(["change,low,promised,high,measured,program", *lines]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
