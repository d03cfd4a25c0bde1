"""Pages of recordings with devices, written by the `report` crate from the timelines of its own tests: tracks and their
looks, arrows between calls and work, what a selected range holds, tables; and a million events in a small file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Page
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

ASSETS = Path(__file__).resolve().parents[2] / "crates" / "report" / "src" / "assets"
SECTIONS = ["gpu", "kernels", "copies", "apis", "layers", "ranges"]


def data_of(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text.split('<script type="application/json" id="payload">')[1].split("</script>")[0])


@pytest.fixture
def model(browser: webdriver.Chrome, pages: Path) -> Iterator[Page]:
    browser.set_window_size(1280, 900)
    page = Page(browser, pages / "model.html").open()
    yield page
    assert page.errors() == []


def click_at(page: Page, x: float, y: float) -> None:
    canvas = page.one("#timeline")
    page.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    size = canvas.size
    move = ActionChains(page.driver).move_to_element_with_offset(
        canvas, int(x - size["width"] / 2), int(y - size["height"] / 2)
    )
    move.click().perform()


def find_colour(page: Page, wanted: str, shade: int = 0) -> list[list[int]]:
    """Pixels of the canvas in one of the page's colours, or off by a shade where a selection lies over them."""
    script = """
    const canvas = document.querySelector("#timeline");
    const style = getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(style.slice(at, at + 2), 16));
    const { width, height } = canvas;
    // A copy: to read the page's own canvas again and again makes the browser complain.
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    const found = [];
    for (let i = 0; i < data.length; i += 4) {
      const same = [r, g, b].every((wanted, place) => Math.abs(data[i + place] - wanted) <= arguments[1]);
      if (same) found.push([(i / 4) % width, Math.floor(i / 4 / width)]);
    }
    return found;
    """
    return page.script(script, wanted, shade)  # type: ignore[return-value]


def test_every_section_is_there(model: Page) -> None:
    for name in SECTIONS:
        assert model.one(f"#{name}-section").is_displayed(), name
    assert "NVIDIA H200" in model.one("#gpu-devices").text
    assert "busy of the steps" in model.one("#gpu-devices").text
    assert "median" in model.one("#gpu-facts").text
    assert "GPU clock" in model.one("#health").text
    labels = [card.text for card in model.find(".card span")]
    assert "GPU busy" in labels and "kernels" in labels
    assert model.find("#gpu-devices .per-step i")


def test_streams_calls_and_counters_are_tracks(pages: Path) -> None:
    data = data_of(pages / "model.html")
    assert [track["title"] for track in data["tracks"]] == ["MainThread (4242)", "stream 7", "stream 13"]
    groups = [group["title"] for group in data["groups"]]
    assert "GPU 0 · NVIDIA H200 of serve.py (pid 4242)" in groups
    assert "GPU 0 · NVIDIA H200 · its own counters" in groups
    curves = [counter["title"] for counter in data["counters"]]
    for title in [
        "busy (by its work)",
        "queued (launched, not finished)",
        "from launch to work (median)",
        "utilisation (device's own)",
        "SM clock",
        "power",
    ]:
        assert title in curves


def test_picked_work_shows_its_launch_and_the_way_there(model: Page) -> None:
    # One step, wide enough for every kernel to be a box of its own; the copy is at the begin of stream 7.
    model.open("#v=1000000,1400000")
    copies = find_colour(model, "--copy")
    assert copies, "copies are drawn in their colour"
    left, top = min(x for x, _ in copies), min(y for _, y in copies)
    assert not find_colour(model, "--link"), "no arrow without a choice"
    click_at(model, left + 20, top + 5)
    model.until(lambda: model.one("#selection-links").is_displayed())
    text = model.one("#selection-links").text
    assert "Launched by cudaMemcpyAsync on MainThread (4242), 15.0 µs before it started." in text
    model.until(lambda: find_colour(model, "--link"))
    rows = [y for _, y in find_colour(model, "--link")]
    assert max(rows) - min(rows) > 40, "the arrow leads to another track"
    model.click("#selection-links button")
    model.until(lambda: "9.00 µs selected" in model.one("#selection-title").text)


def test_a_picked_wait_shows_what_it_waited_for(model: Page) -> None:
    data = data_of(model.path)
    waits = data["tracks"][1]["launched"]["waits"]
    assert waits["place"], "stream 7 has waits whose work is known"
    # The end of the first step, where the host waits for the copy of its result.
    model.open("#v=2300000,2700000&q=cudaStreamSynchronize")
    hits = find_colour(model, "--hit")
    top = min(y for _, y in hits)
    middle = [x for x, y in hits if y == top]
    click_at(model, middle[len(middle) // 2], top + 6)
    model.until(lambda: model.one("#selection-links").is_displayed())
    text = model.one("#selection-links").text
    waited = "It waited for Memcpy DtoH (Device -> Pinned) on stream 7, which ended 2.00 µs before the wait did."
    assert text.startswith(waited)
    model.until(lambda: find_colour(model, "--link", shade=24))
    rows = [y for _, y in find_colour(model, "--link", shade=24)]
    assert max(rows) - min(rows) > 40, "the arrow leads to another track"
    model.click("#selection-links button")
    model.until(lambda: "42.0 µs selected" in model.one("#selection-title").text)


def test_a_picked_layer_shows_what_was_launched_in_it(model: Page) -> None:
    model.open("#v=1300000,1420000&q=transformer.h.0")
    hits = find_colour(model, "--hit")
    # The layer itself is the widest of its hits, and the uppermost.
    top = min(y for _, y in hits)
    middle = [x for x, y in hits if y == top]
    click_at(model, middle[len(middle) // 2], top + 6)
    model.until(lambda: "Launched inside it: 7 GPU operations" in model.one("#selection-links").text)
    model.until(lambda: find_colour(model, "--link"))


def test_a_selected_range_shows_the_busy_share_and_the_kernels(model: Page) -> None:
    model.open("#v=1000000,5000000&s=1310000,2300000")
    model.until(lambda: model.one("#selection-gpu").is_displayed())
    text = model.one("#selection-gpu").text
    assert "GPU 0 · NVIDIA H200: busy" in text and "about" not in text, "every piece is drawn, so it is exact"
    rows = model.find("#selection-gpu tbody tr")
    assert "cutlass" in rows[0].text and len(rows) == 7
    slices = model.one("#selection-slices").text
    assert "cudaLaunchKernel" in slices and "cutlass" not in slices, "threads and devices are told apart"


def test_kernels_sort_and_filter(model: Page) -> None:
    shares = [float(row.find_elements("tag name", "td")[2].text.split()[0]) for row in model.find("#kernels tbody tr")]
    assert len(shares) == 8 and shares == sorted(shares, reverse=True)
    head = model.one("#kernels thead").text
    for column in [
        "kernel",
        "total",
        "share",
        "count",
        "mean",
        "p95",
        "grid",
        "block",
        "registers",
        "shared memory",
        "layer",
    ]:
        assert column in head
    model.click("#kernels-filter")
    model.keys("sgemm")
    model.until(lambda: len(model.find("#kernels tbody tr")) == 3)


def test_tables_fit_a_usual_window(browser: webdriver.Chrome, pages: Path) -> None:
    browser.set_window_size(1400, 900)
    page = Page(browser, pages / "model.html").open()
    wide = (
        "return arguments[0].filter((host) => host.scrollWidth > host.clientWidth).map((host) => host.parentElement.id)"
    )
    assert page.script(wide, page.find(".scroll")) == []
    assert "transformer.h.*" in page.one("#kernels tbody").text, "of every block, not of the first"


def test_very_many_steps_are_drawn_over_the_whole_run(browser: webdriver.Chrome, pages: Path) -> None:
    browser.set_window_size(1280, 900)
    page = Page(browser, pages / "steps.html").open()
    data = data_of(pages / "steps.html")
    assert data["steps"]["all"] == 40000
    assert "Drawn: 200 of 40,000, the longest of neighbours." in page.one("#steps-why").text
    assert "Busy share of the steps: 240 of 40,000, the lowest of neighbours" in page.one("#gpu-devices").text
    assert "15,000 of 40,000 steps are drawn" in page.one("#health").text
    # The very last step is slow and without a kernel; it is there under its own number.
    last = page.find("#durations i")[-1]
    page.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", last)
    ActionChains(page.driver).move_to_element(last).perform()
    page.until(lambda: "step 40000:" in page.one("#tip").text)
    bars = page.find("#gpu-devices .per-step i")
    assert bars[-1].get_attribute("title") == "step 40,000: 0.0 %"
    end = data["meta"]["duration_ns"]
    page.open(f"#v={end - 300_000},{end}")
    assert find_colour(page, "--step"), "the lane of steps goes to the end"
    assert page.errors() == []


def test_search_finds_a_kernel(model: Page) -> None:
    model.keys("/")
    model.keys("flash_fwd")
    model.keys(Keys.ENTER)
    model.until(lambda: model.one("#selection").is_displayed())
    assert "flash_fwd" in model.one("#selection-gpu").text


@pytest.mark.parametrize("width", [420, 1280])
def test_both_themes_and_both_widths(browser: webdriver.Chrome, pages: Path, width: int) -> None:
    browser.set_window_size(width, 900)
    page = Page(browser, pages / "small.html").open()
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for _ in range(2):
        page.until(lambda: int(str(page.script(wide))) <= 1)
        page.until(lambda: page.is_painted("#timeline"))
        page.click("#theme")
    assert page.errors() == []


def test_a_million_events_are_a_small_page_that_moves(browser: webdriver.Chrome, pages: Path) -> None:
    path = pages / "million.html"
    assert path.stat().st_size < 5_000_000
    browser.set_window_size(1280, 900)
    page = Page(browser, path).open("#v=0,5000000000&s=1000000000,2000000000")
    page.until(lambda: page.one("#selection-gpu").is_displayed())
    assert "busy about" in page.one("#selection-gpu").text, "short work is drawn together, and that is said"
    before = page.view()
    page.click("#timeline")
    page.keys("w")
    page.until(lambda: page.view()[1] - page.view()[0] < before[1] - before[0])
    assert page.is_painted("#timeline")
    assert page.errors() == []


def test_a_page_without_devices_has_none_of_this(page: Page, payload: dict) -> None:
    assert payload["devices"] == [] and payload["gpu"] is None
    for name in [*SECTIONS]:
        assert not page.one(f"#{name}-section").is_displayed()
    assert not page.one("#gpu-legend").is_displayed()
    assert "GPU" not in page.one("nav").text


def test_numbers_read_as_in_the_other_reports(browser: webdriver.Chrome, pages: Path) -> None:
    numbers = json.loads((pages / "numbers.json").read_text(encoding="utf-8"))
    browser.get("about:blank")
    script = """
    const [source, numbers, done] = arguments;
    const module = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    import(module).then(({ time, amount, percent }) => done({
      times: numbers.times.map(([ns]) => [ns, time(ns)]),
      sizes: numbers.sizes.map(([bytes]) => [bytes, amount(bytes, "bytes")]),
      parts: numbers.parts.map(([part, whole]) => [part, whole, percent(part, whole)]),
    }));
    """
    source = (ASSETS / "data.js").read_text(encoding="utf-8")
    assert browser.execute_async_script(script, source, numbers) == numbers
