"""Prints, for every crate, its lines and its top-level modules in the order in which they use each other; modules that
use each other in a circle stand in one line. A name that the root of a crate takes out of a module (`pub use
module::Name`) is that module. crates/cli/tests/architecture.rs proves that there are no circles."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def code_of(file: Path) -> str:
    """Without tests and comments: both may name anything."""
    text = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests")[0]
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def flat(tree: str) -> list[str]:
    """The paths behind a `use`: of `a::{b, c::{d, e as f}}` these are `a::b`, `a::c::d` and `a::c::e as f`."""
    head, brace, group = tree.strip().partition("{")
    if not brace:
        return [head.strip()] if head.strip() else []
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(group):
        if depth == 0 and letter in ",}":
            parts.append(group[begin:at])
            begin = at + 1
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            break
    return [head.strip() + path for part in parts for path in flat(part)]


def named_after(prefix: str, code: str) -> set[str]:
    """Of `crate::{a::b, c}` these are `a` and `c`."""
    names = set(re.findall(rf"(?<![\w:$]){prefix}(\w+)", code))
    for found in re.finditer(rf"(?<![\w:$]){prefix}(?=\{{)", code):
        names.update(re.split(r"\W", path)[0] for path in flat(code[found.end() :]))
    return names


def re_exports(root: str, modules: Iterable[str]) -> dict[str, str]:
    """The names that the root of a crate takes out of its modules, each with its module."""
    found = {}
    for tree in re.findall(r"^(?:pub(?:\(crate\))? )?use ([^;]*);", root, re.MULTILINE):
        for path in flat(tree):
            first, _, rest = path.removeprefix("crate::").removeprefix("self::").partition("::")
            if first in modules and rest:
                found[re.split(r"::| as ", rest)[-1].strip()] = first
    return found


def uses(source: Path) -> dict[str, set[str]]:
    """For each top-level module, the others that it uses: by their names, or by what the root takes out of them."""
    root = code_of(next(file for file in (source / "lib.rs", source / "main.rs") if file.exists()))
    listed = re.findall(r"^(?:pub(?:\(crate\))? )?mod (\w+);", root, re.MULTILINE)
    module_of = {**{module: module for module in listed}, **re_exports(root, listed)}
    found: dict[str, set[str]] = {module: set() for module in listed}
    for file in source.rglob("*.rs"):
        path = file.relative_to(source)
        own = path.parts[0].removesuffix(".rs")
        if own not in found or "tests" in path.parts or file.name == "tests.rs":
            continue
        code = code_of(file)
        depth = len(path.parts) - (file.name == "mod.rs")
        named = named_after("crate::", code) | named_after("super::" * depth, code)
        found[own] |= {module_of[name] for name in named & module_of.keys()} - {own}
    return found


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = [start]
    while left:
        for other in graph[left.pop()] - seen:
            seen.add(other)
            left.append(other)
    return seen


def order(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules, the ones that use nobody first. A group of several is a circle."""
    far = {module: reached(module, graph) for module in graph}
    groups = {frozenset({one, *(other for other in far[one] if one in far[other])}) for one in graph}
    return [sorted(group) for group in sorted(groups, key=lambda group: (len(far[min(group)]), sorted(group)))]


def main() -> int:
    listed = (ROOT / "Cargo.toml").read_text(encoding="utf-8").split("members = [")[1].split("]")[0]
    members = re.findall(r'"crates/([\w-]+)"', listed)
    circles = 0
    for member in members:
        source = ROOT / "crates" / member / "src"
        files = list(source.rglob("*.rs"))
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        print(f"{member}: {lines:,} lines in {len(files)} files")
        for group in order(uses(source)):
            circles += len(group) > 1
            print(f"  {', '.join(group)}{'   <- a circle' if len(group) > 1 else ''}")
    return 1 if circles else 0


if __name__ == "__main__":
    sys.exit(main())
