"""How many samples of native code have a name: of the recordings of real programs (tests/traces/programs), or of the
folders that are given. Native is a sample whose innermost frame lies in a library, or whose thread ran without the GIL
below a line of Python. A frame has a name when its function is known; the library alone is none. Needs pyarrow."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from pyarrow import parquet

TRACES = Path(__file__).resolve().parents[1] / "traces" / "programs"
RAN, HELD_GIL = 1, 2
UNNAMED = "[no symbol]"
GENERATED = "[generated code]"


def rows(trace: Path, table: str) -> list[dict[str, Any]]:
    return [row for file in sorted(trace.glob(f"{table}.*.parquet")) for row in parquet.read_table(file).to_pylist()]


def kinds(trace: Path) -> Counter[str]:
    """Native samples by what is known of them."""
    names = {row["id"]: row for row in rows(trace, "names")}
    leaves = {row["id"]: (names.get(row["name"]), row["line"]) for row in rows(trace, "stacks")}
    found: Counter[str] = Counter()
    for sample in rows(trace, "samples"):
        name, line = leaves.get(sample["stack"], (None, 0))
        if not sample["state"] & RAN or name is None:
            continue
        if name["file"] and line == 0 and not name["file"].endswith(".py"):
            named = name["text"] not in (UNNAMED, GENERATED)
            found["named" if named else name["text"]] += 1
        elif not sample["state"] & HELD_GIL:
            found["no native frame"] += 1
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("traces", nargs="*", type=Path, help="trace folders [default: those of tests/traces/programs]")
    chosen = options.parse_args()
    total: Counter[str] = Counter()
    for trace in chosen.traces or sorted(one for one in TRACES.iterdir() if one.is_dir()):
        found = kinds(trace)
        total += found
        print(line(trace.name, found))
    print(line("all", total))


def line(what: str, found: Counter[str]) -> str:
    count = found.total()
    if not count:
        return f"{what:30} no native samples"
    rest = ", ".join(f"{number} {kind}" for kind, number in found.most_common() if kind != "named")
    return f"{what:30} {found['named']:5} of {count:5} named ({found['named'] / count:.0%}); {rest or 'all'}"


if __name__ == "__main__":
    main()
