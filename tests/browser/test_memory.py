"""The memory section of a page: it is there, shares the range of the timeline, zooms in height, says what is under the
pointer, and keeps names text. The page of a snapshot has one, too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Page, report
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

WRITER = Path(__file__).resolve().parents[1] / "snapshots" / "write_snapshot.py"
# The width of the names left of the curves.
GUTTER = 190
RULER = 24


@pytest.fixture
def memory(browser: webdriver.Chrome, pages: Path) -> Iterator[Page]:
    browser.set_window_size(1280, 1200)
    page = Page(browser, pages / "memory.html").open()
    page.script("document.querySelector('#memory-section').scrollIntoView({behavior: 'instant'})")
    yield page
    assert page.errors() == []


def point(page: Page, share: float, y: float) -> ActionChains:
    """The pointer at a share of the visible time, so many pixels below the top of the canvas."""
    canvas = page.one("#memory")
    page.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    size = canvas.size
    x = GUTTER + share * (size["width"] - GUTTER)
    return ActionChains(page.driver).move_to_element_with_offset(
        canvas, int(x - size["width"] / 2), int(y - size["height"] / 2)
    )


def told(page: Page) -> list[str]:
    page.until(lambda: page.one("#tip").is_displayed())
    return page.one("#tip").text.splitlines()


# Where the lanes begin: a device, the allocator's levels, and the blocks.
DEVICE, LEVELS, BLOCKS = RULER, RULER + 160, RULER + 160 + 94


def test_the_section_says_who_has_what(memory: Page) -> None:
    assert memory.one("#memory-section").is_displayed() and memory.is_painted("#memory")
    assert "25 blocks drawn" in memory.one("#memory-blocks-note").text
    assert memory.one("#memory-peak-title").text == "At the peak: 96.0 MiB"
    first = memory.one("#memory-end tbody tr").text
    assert first.startswith("load (model.py:12)") and "48.0 MiB" in first
    parts = memory.one("#memory-devices").text
    assert "CUDA context and libraries" in parts and "grown after the first step, by no recorded call" in parts
    assert "handle (serve.py:31)" in memory.one("#memory-legend").text


def test_a_pointer_tells_what_is_below_it(memory: Page) -> None:
    point(memory, 0.5, BLOCKS + 330).perform()
    lines = told(memory)
    assert lines[0] == "48.0 MiB · load (model.py:12)" and "not freed in the recording" in lines
    point(memory, 0.98, DEVICE + 10).perform()
    memory.until(lambda: "Memory in use on GPU 0" in told(memory)[0])
    assert any("64.0 MiB grown after the first step" in line for line in told(memory))
    point(memory, 0.5, LEVELS + 40).perform()
    memory.until(lambda: any(line.endswith("reserved") for line in told(memory)))
    assert "128 MiB reserved" in told(memory)


def test_it_zooms_with_the_timeline_and_in_height(memory: Page) -> None:
    start, end = memory.view()
    before = memory.script("return document.querySelector('#memory').toDataURL()")
    wheel = """
    const box = arguments[0].getBoundingClientRect();
    const at = { clientX: box.left + 700, clientY: box.top + arguments[1], deltaY: -1200, ctrlKey: true };
    arguments[0].dispatchEvent(new WheelEvent("wheel", { ...at, bubbles: true, cancelable: true }));
    """
    memory.script(wheel, memory.one("#memory"), BLOCKS + 100)
    memory.until(lambda: memory.view()[1] - memory.view()[0] < 0.6 * (end - start))
    zoomed = memory.script("return document.querySelector('#memory').toDataURL()")
    assert zoomed != before
    # The weights filled the lower half; now the lane shows what lies above them.
    point(memory, 0.5, BLOCKS + 330).perform()
    assert "load (model.py:12)" not in memory.one("#tip").text
    memory.click("#memory-all")
    memory.until(lambda: memory.view() == (start, end))
    memory.until(lambda: memory.script("return document.querySelector('#memory').toDataURL()") != zoomed)
    point(memory, 0.5, BLOCKS + 330).perform()
    memory.until(lambda: told(memory)[0] == "48.0 MiB · load (model.py:12)")


def test_a_click_selects_the_life_of_a_block_for_the_whole_page(memory: Page) -> None:
    point(memory, 0.5, BLOCKS + 330).click().perform()
    memory.until(lambda: "s=" in str(memory.script("return location.hash")))
    assert memory.one("#selection-title").text.endswith("selected, from 101 ms to 995 ms")
    point(memory, 0.2, DEVICE + 50).key_down(Keys.SHIFT).click_and_hold().move_by_offset(200, 0).release().key_up(
        Keys.SHIFT
    ).perform()
    memory.until(lambda: "101 ms" not in memory.one("#selection-title").text)


def test_names_stay_text(browser: webdriver.Chrome, pages: Path) -> None:
    page = Page(browser, pages / "hostile_memory.html").open()
    assert page.script("return window.injected") is None and not page.find("#memory-section img")
    text = page.one("#memory-section").text
    assert "<img/src=x/onerror=window.injected=1>" in text and "\u202e" not in text
    section = page.one("#memory-section").size
    assert section["width"] <= 1280 and section["height"] < 4000
    assert page.errors() == []


def test_the_page_of_a_snapshot_has_it(browser: webdriver.Chrome, tmp_path: Path) -> None:
    snapshot = tmp_path / "leaking.pickle"
    subprocess.run([sys.executable, WRITER, snapshot, "--leak"], check=True)
    page = Page(browser, report(snapshot)).open()
    assert page.one("#memory-section").is_displayed() and page.is_painted("#memory")
    assert "handle (serve.py:31)" in page.one("#memory-end").text
    assert page.errors() == []


def test_a_recording_without_gpu_memory_has_no_section(page: Page) -> None:
    assert not page.one("#memory-section").is_displayed()
    assert not [link for link in page.find("nav a") if link.text == "Memory"]
