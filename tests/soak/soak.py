"""Kills workloads, recorders, supervisors and all of them at random moments, and holds every trace to what the workload
itself counted: each record that it published is in the trace, or in the losses. `--seed` replays a run."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from account import Account, account
from victims import KINDS, Round

# A kill of the recorder may come while the last one is being replaced, and often after it.
PAUSES_S = (0.0, 0.002, 0.01, 0.03, 0.1, 0.3)
# So many records a second are written, about: 1,000 scopes in bursts, or as fast as it goes.
PACED, FAST = "paced", "fast"


@dataclass
class Tally:
    """What came out, by kind of kill."""

    rounds: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    recovered: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, kind: str, kills: int, found: Account) -> None:
        self.rounds[kind] += 1
        self.kills[kind] += kills
        self.records[kind] += found.published
        self.lost[kind] += found.lost
        self.recovered[kind] += found.state == "recovered"

    def table(self) -> str:
        rows = [("kind of kill", "recordings", "kills", "records", "lost, counted", "by analyze")]
        columns = (self.rounds, self.kills, self.records, self.lost, self.recovered)
        rows += [(kind, *(f"{column[kind]:,}" for column in columns)) for kind in KINDS]
        rows += [("in all", *(f"{sum(column.values()):,}" for column in columns))]
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if not at else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


def one_round(number: int, seed: int, folder: Path, most: int, tally: Tally) -> None:
    """One recording with its kills, of which there are at most so many."""
    chance = random.Random(f"{seed}-{number}")
    kind = chance.choice(KINDS)
    pace = chance.choice((PACED, PACED, FAST))
    trace = folder / f"trace-{number}"
    with Round(trace, pace) as recording:
        kills = recording.play(kind, chance, PAUSES_S, most)
        recording.complete()
        published = recording.published()
    found = account(trace, published)
    where = f"round {number} of seed {seed} ({kind}, {pace}, {kills} kills)"
    fault = found.fault()
    # A gap of the recorder is shorter than what a ring holds of a workload that rests now and then.
    if fault is None and pace == PACED and found.lost:
        fault = f"{found.lost} records were overwritten of a workload that leaves time enough"
    if fault is not None:
        tally.faults.append(f"{where}: {fault}; notes: {found.notes}; kept in {trace}")
        return
    tally.add(kind, kills, found)
    recording.remove()


def soak(kills: int, minutes: float, seed: int, folder: Path, tell: bool) -> Tally:
    """Until so many kills are done, the time is over, or something is wrong."""
    tally, begun, told, number = Tally(), time.monotonic(), time.monotonic(), 0
    while (left := kills - sum(tally.kills.values())) > 0 and not tally.faults:
        if time.monotonic() - begun > minutes * 60:
            break
        one_round(number, seed, folder, left, tally)
        number += 1
        if tell and time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{sum(tally.kills.values()):,} of {kills:,} kills, {told - begun:.0f} s", flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=120.0, help="stop after so long, however many kills it were")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    # Rounds remove what they made; what is wrong stays to be looked at.
    folder = Path(tempfile.mkdtemp(prefix="inferscope-soak-"))
    tally = soak(options.kills, options.minutes, options.seed, folder, tell=True)
    if not tally.faults:
        shutil.rmtree(folder)
    print(tally.table())
    print(f"seed {options.seed}")
    for fault in tally.faults:
        print(f"FAULT {fault}")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
