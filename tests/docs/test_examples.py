"""Runs what the documentation shows. On each page, in order and in one folder: a ```python block is a script (a first
line `# name.py` names it); a ```console block holds commands after `$ ` and what they print, where a line of `...`
stands for any lines and `…` inside a line for any text. Other blocks (```sh, ```text) are not run."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pages import QUICKSTART, REPOSITORY, blocks, commands, matches, run

PAGES = [page for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))] if page != QUICKSTART]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_page_shows_works(page, tmp_path):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / "tests").symlink_to(REPOSITORY / "tests")
    for number, (kind, block) in enumerate(blocks(page), 1):
        if kind == "python":
            named = re.match(r"# (\w+\.py)\n", block)
            script = tmp_path / (named.group(1) if named else f"example_{number}.py")
            script.write_text(block, encoding="utf-8")
            done = run([sys.executable, script.name], tmp_path)
            assert done.returncode == 0, f"{page.name}, block {number}:\n{block}\n{done.stdout}"
            continue
        assert kind == "console", f"{page.name}: only the quickstart has a diff"
        for command, expected in commands(block):
            done = run(command, tmp_path)
            assert done.returncode == 0, f"{page.name}: $ {command}\n{done.stdout}"
            printed = [line.rstrip() for line in done.stdout.splitlines()]
            if expected and not matches(expected, printed):
                wanted, got = "\n".join(expected), "\n".join(printed)
                pytest.fail(f"{page.name}: $ {command}\n--- the page shows\n{wanted}\n--- it printed\n{got}")
