"""Pages of traces that hardly are: nothing recorded, one event, no steps, very many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import INFERSCOPE, Page, report
from selenium import webdriver

SCRIPTS = {
    "nothing": ("pass", ["--no-stacks", "--memory-hz", "0"]),
    "one-event": ("import inferscope; inferscope.mark_event('only')", ["--no-stacks", "--memory-hz", "0"]),
    "no-steps": ("import time; t = time.time()\nwhile time.time() < t + 0.4: sum(range(1000))", []),
    "open-scope": ("import os\nfrom inferscope import scope\nscope('never closed').__enter__()\nos._exit(0)", []),
    "many": (
        "from inferscope import scope\nfor i in range(150_000):\n    with scope(f'name {i % 5000}'): pass",
        [],
    ),
    "threads": (
        "import threading\nfrom inferscope import scope\n"
        "def work():\n    with scope('w'): sum(range(100))\n"
        "for _ in range(300):\n    t = threading.Thread(target=work); t.start(); t.join()",
        [],
    ),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_every_page_opens_without_an_error(kind: str, browser: webdriver.Chrome, tmp_path: Path) -> None:
    text, options = SCRIPTS[kind]
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    trace = tmp_path / "trace"
    command = [INFERSCOPE, "run", "--quiet", "--output", trace, *options, "--", sys.executable, script]
    subprocess.run(command, check=True, timeout=100)
    path = report(trace)
    assert path.stat().st_size < 5_000_000
    page = Page(browser, path).open()
    assert page.find("#answer p")
    page.keys("w")
    page.keys("d")
    assert page.errors() == []
