"""The programs of the suite and what must be said about each, read from their files without running them."""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
# What the programs stand on; all other files are programs.
SHARED = ("frame.py", "parts.py")
HEALTHY = "healthy"


@dataclass(frozen=True)
class Program:
    name: str
    # The rule that must come first; `healthy`: none may blame anything.
    expect: str
    # Rules that say the same thing with the same fix; the program's file says why.
    also: tuple[str, ...] = ()
    # The second planted bottleneck: found too, but not first.
    second: str | None = None

    @property
    def file(self) -> Path:
        return WORKLOADS / f"{self.name}.py"

    @property
    def accepted(self) -> tuple[str, ...]:
        return (self.expect, *self.also)

    def row(self) -> dict[str, Any]:
        return asdict(self) | {"also": list(self.also)}

    @staticmethod
    def of(row: dict[str, Any]) -> Program:
        return Program(row["name"], row["expect"], tuple(row["also"]), row["second"])


def read(file: Path) -> Program:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    if not ast.get_docstring(tree) or "EXPECT" not in found:
        raise SystemExit(f"{file.name}: a program says in its docstring what is planted, and has EXPECT")
    return Program(file.stem, found["EXPECT"], tuple(found.get("ALSO", ())), found.get("SECOND"))


def programs(only: str = "") -> list[Program]:
    """All of them in order of their names, or those of a list."""
    every = {file.stem: file for file in sorted(WORKLOADS.glob("*.py")) if file.name not in SHARED}
    names = [name.strip() for name in only.split(",") if name.strip()] or list(every)
    if unknown := [name for name in names if name not in every]:
        raise SystemExit(f"no such program: {', '.join(unknown)}; there are {', '.join(every)}")
    return [read(every[name]) for name in names]
