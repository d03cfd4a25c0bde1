"""Cuts a trace of the suite: half of it, a third out of the middle, every other sample. Less data of the same program,
of which the same is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyarrow import compute, parquet

TIMES = {
    "slices": "start_ns",
    "gpu": "start_ns",
    "samples": "time_ns",
    "counters": "time_ns",
    "allocations": "time_ns",
    "blocks": "time_ns",
}


def tables(trace: Path, name: str) -> list[Path]:
    return sorted(trace.glob(f"{name}.*.parquet"))


def between(trace: Path, first: float, last: float) -> None:
    """Leaves what began while this part of the GPU's work, from 0 to 1, was done."""
    starts = sorted(
        start.as_py() for file in tables(trace, "gpu") for start in parquet.read_table(file, columns=["start_ns"])[0]
    )
    since, until = starts[int(first * (len(starts) - 1))], starts[int(last * (len(starts) - 1))]
    for name, column in TIMES.items():
        for file in tables(trace, name):
            table = parquet.read_table(file)
            times = table[column]
            inside = compute.and_(compute.greater_equal(times, since), compute.less_equal(times, until))
            parquet.write_table(table.filter(inside), file)


def every_other_sample(trace: Path) -> None:
    for file in tables(trace, "samples"):
        table = parquet.read_table(file)
        kept = set(sorted(set(table["time_ns"].to_pylist()))[::2])
        parquet.write_table(table.filter([time in kept for time in table["time_ns"].to_pylist()]), file)


PARTS: dict[str, Callable[[Path], None]] = {
    "first half": lambda trace: between(trace, 0.0, 0.5),
    "second half": lambda trace: between(trace, 0.5, 1.0),
    "middle third": lambda trace: between(trace, 1 / 3, 2 / 3),
    "every other sample": every_other_sample,
}
