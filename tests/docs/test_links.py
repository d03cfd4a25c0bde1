"""Every relative link of every page of the repository leads to a file, and to a heading where it names one; so does
every page that code, tests and schemas name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pages import REPOSITORY

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    ).stdout
    files = [REPOSITORY / name for name in listing.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


FILES = tracked()
PAGES = [file for file in FILES if file.suffix == ".md"]


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists():
            found.append(f"{link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            found.append(f"{link}: no such heading")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one) [b](#two) [c](gone.md) [d](page.md#one) [e](https://example.org/x)\n")
    assert broken(page) == ["#two: no such heading", "gone.md: no such file"]


def test_pages_that_code_names_are_there() -> None:
    """An error message, a schema or a comment that sends its reader to a page."""
    missing = []
    for file in FILES:
        if file.suffix in {".rs", ".py", ".pyi", ".json", ".toml", ".yaml", ".js"} or file.name == "Makefile":
            for name in set(NAMED.findall(file.read_text(encoding="utf-8", errors="replace"))):
                if not (REPOSITORY / name).exists():
                    missing.append(f"{file.relative_to(REPOSITORY)} names {name}")
    assert missing == []


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    folder = REPOSITORY / "docs"
    listed = {(folder / link.partition("#")[0]).resolve() for link in LINK.findall(contents)}
    pages = {page for page in [*folder.glob("*.md"), *folder.glob("internals/*.md")] if page.name != "README.md"}
    assert sorted(str(page.relative_to(folder)) for page in pages - listed) == []
