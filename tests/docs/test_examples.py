"""Runs what the documentation shows. On each page, in order and in one folder: a ```python block is a script (a first
line `# name.py` names it); a ```console block holds commands after `$ ` and what they print, where a line of `...`
stands for any lines and `…` inside a line for any text. Other blocks (```sh, ```text) are not run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether what was printed is what the page shows."""
    parts = [
        r"(?:.*\n)*?" if line.strip() in ("...", "…") else ".*".join(map(re.escape, line.split("…"))) + r" *\n"
        for line in expected
    ]
    return re.fullmatch("".join(parts), "".join(line + "\n" for line in printed)) is not None


def commands(block: str) -> list[tuple[str, list[str]]]:
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_page_shows_works(page, tmp_path):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / "tests").symlink_to(REPOSITORY / "tests")
    for number, (kind, block) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
        if kind == "python":
            named = re.match(r"# (\w+\.py)\n", block)
            script = tmp_path / (named.group(1) if named else f"example_{number}.py")
            script.write_text(block, encoding="utf-8")
            done = run([sys.executable, script.name], tmp_path)
            assert done.returncode == 0, f"{page.name}, block {number}:\n{block}\n{done.stdout}"
            continue
        for command, expected in commands(block):
            done = run(command, tmp_path)
            assert done.returncode == 0, f"{page.name}: $ {command}\n{done.stdout}"
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            if expected and not matches(expected, printed):
                wanted, got = "\n".join(expected), "\n".join(printed)
                pytest.fail(f"{page.name}: $ {command}\n--- the page shows\n{wanted}\n--- it printed\n{got}")


@pytest.mark.parametrize("page", [*PAGES, *REPOSITORY.glob("[AC]*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
