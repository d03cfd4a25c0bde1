"""Holds the diagnosis to recordings of real programs (tests/traces/programs): steps, start-up, first finding.
`--record` makes them anew, with a Python that has the frameworks and pyarrow: `programs_replay.py --record --command
.venvs/frameworks/bin/inferscope`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import neutral
from analysis import analyse
from real_programs import HOWS, PROGRAMS, wrong
from replay import command

TESTS = Path(__file__).resolve().parents[1]
TRACES = TESTS / "traces" / "programs"
# Instead of the host's name.
HOST = "two-cores"


def record(binary: Path, program: str, how: str, target: Path) -> None:
    """Replaces what is there only when all went well."""
    with tempfile.TemporaryDirectory(prefix="inferscope-programs-") as folder:
        trace = Path(folder) / "trace"
        script = TESTS / "frameworks" / "programs" / f"{program}.py"
        words = [binary, "run", "--quiet", "--output", trace, "--", sys.executable, script, how]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=200)
        for file in list(trace.iterdir()):
            if file.suffix != ".parquet" and file.name != "manifest.json":
                file.unlink()
        neutral.trace(trace, HOST)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(trace, target)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", help="the inferscope to run [default: the one on PATH]")
    options.add_argument("--only", default="", help="some programs, with commas")
    options.add_argument("--record", action="store_true", help="record them first")
    chosen = options.parse_args()
    binary = command(chosen.command)
    unknown = set(filter(None, chosen.only.split(","))) - set(PROGRAMS)
    if unknown:
        raise SystemExit(f"no program of tests/suite/real_programs.py: {', '.join(sorted(unknown))}")
    failed = 0
    for program, expected in PROGRAMS.items():
        if chosen.only and program not in chosen.only.split(","):
            continue
        for how in HOWS:
            trace = TRACES / f"{program}-{how}"
            if chosen.record:
                record(binary, program, how, trace)
            found = wrong(expected, how, analyse(binary, trace)) if trace.exists() else ["no recording"]
            failed += bool(found)
            print("FAIL " if found else "right", program, how, *found, sep="  ", flush=True)
    print(f"{failed} recordings of real programs are told wrong" if failed else "all real programs are told right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
