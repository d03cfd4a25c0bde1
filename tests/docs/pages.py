"""Reads pages of documentation: their blocks of code, the commands in a console block, and whether what a command
printed is what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Needs PyTorch: tests/frameworks runs it.
QUICKSTART = REPOSITORY / "docs" / "quickstart-pytorch.md"
BLOCK = re.compile(r"^```(python|console|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Kind and text of every block that is run, in order."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            assert found, f"a console block starts with a command, not with {line!r}"
            found[-1][1].append(line.rstrip())
    return found


def run(command: list[str] | str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
    environ |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}", "COLUMNS": "120"}
    return subprocess.run(
        command,
        shell=isinstance(command, str),
        executable="/bin/bash" if isinstance(command, str) else None,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )


def stands_for_lines(line: str) -> bool:
    return line.strip() in ("...", "…")


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether what was printed is what the page shows: a line of `...` stands for any lines, `…` for any text."""
    parts = [
        r"(?:.*\n)*?" if stands_for_lines(line) else ".*".join(map(re.escape, line.split("…"))) + r" *\n"
        for line in expected
    ]
    return re.fullmatch("".join(parts), "".join(line + "\n" for line in printed)) is not None


# A figure with its unit, or a range of two.
NUMBER = r"[+\u2212-]?\d[\d,.]*(?: (?:ns|µs|ms|s|min|%))?"
FIGURE = re.compile(f"{NUMBER}(?: to {NUMBER})?")


def matches_but_for_figures(expected: list[str], printed: list[str]) -> bool:
    """As `matches`, where a page shows the figures of one run: every figure may be another, and lines may be broken
    elsewhere."""
    parts = []
    for line in expected:
        if stands_for_lines(line):
            parts.append(r"(?:.* )?")
        else:
            words = " ".join(line.split())
            texts = (".*".join(map(re.escape, text.split("…"))) for text in FIGURE.split(words))
            parts.append(f"(?:{FIGURE.pattern})".join(texts) + " ")
    text = " ".join(" ".join(printed).split()) + " "
    return re.fullmatch("".join(parts), text) is not None
