"""What a measurement gives, and how all of them are printed: what was promised, what was measured, and the peers."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass
class Row:
    what: str
    target: str
    measured: str
    # None: there is no promise about this one, or it could not be measured (then `measured` says why).
    reached: bool | None = None
    peers: str = ""

    @property
    def verdict(self) -> str:
        return {True: "reached", False: "MISSED", None: "-"}[self.reached]


def render(rows: list[Row]) -> str:
    """A table whose cells wrap, so that it stays readable in a CI log."""
    widths = (34, 22, 30, 8, 44)
    titles = ("what", "target", "measured", "verdict", "peers, same run")

    def lines(cells: tuple[str, ...]) -> list[str]:
        wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
        height = max(len(cell) for cell in wrapped)
        padded = [cell + [""] * (height - len(cell)) for cell in wrapped]
        joined = (
            " | ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
            for parts in zip(*padded, strict=True)
        )
        return [line.rstrip() for line in joined]

    rule = "-+-".join("-" * width for width in widths)
    out = [*lines(titles), rule]
    for row in rows:
        out += lines((row.what, row.target, row.measured, row.verdict, row.peers))
        out.append(rule)
    missed = sum(row.reached is False for row in rows)
    reached = sum(row.reached is True for row in rows)
    out.append(f"{reached} figures reached, {missed} missed, {len(rows) - reached - missed} without a verdict")
    return "\n".join(out)
