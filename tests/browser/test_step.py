"""The median step as a picture, the durations of the steps, why devices are idle, and the box of health: all of it
jumps to the timeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Page
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains

LANES = ["host", "launch", "GPU 0", "GPU 0 copies", "GPU 0 idle"]


@pytest.fixture
def model(browser: webdriver.Chrome, pages: Path) -> Iterator[Page]:
    browser.set_window_size(1280, 900)
    page = Page(browser, pages / "model.html").open()
    yield page
    assert page.errors() == []


def selected(page: Page) -> tuple[float, float]:
    """The selected range, from the address bar."""
    address = str(page.script("return location.hash"))
    start, end = address.split("s=")[1].split("&", maxsplit=1)[0].split(",")
    return float(start), float(end)


def press(page: Page, found: object) -> None:
    """A click in the middle of a shape, which may be too small for the driver to hit by itself."""
    page.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
    page.script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", found)


def test_the_page_leads_with_the_answer_the_step_the_idle_time_and_the_findings(model: Page) -> None:
    order = ["answer", "waterfall", "gpu", "findings", "timeline", "kernels", "health"]
    tops = [model.one(f"#{name}-section").location["y"] for name in order]
    assert tops == sorted(tops)
    assert len(model.find("#answer p")) == 3
    chips = [chip.text for chip in model.find("#verdict .chip")]
    for label in ["losses", "clock", "GPU clock", "overhead", "replay"]:
        assert any(label in chip for chip in chips), (label, chips)


def test_every_lane_is_drawn_and_says_what_it_shows(model: Page) -> None:
    assert [title.text for title in model.find(".lane-title")] == LANES
    for lane in model.find(".picture svg"):
        assert lane.find_elements("css selector", "rect"), "something is drawn in it"
    # The device's lanes and its idle time make up the step: nothing of the picture is empty.
    totals = model.script("""
        const data = JSON.parse(document.getElementById("payload").textContent).picture;
        const lane = (kind) => data.lanes.find((lane) => lane.kind === kind);
        const sum = (kind) => lane(kind).classes.reduce((sum, one) => sum + one.ns, 0);
        return [data.dur, sum("host"), sum("gpu") + sum("copies") + sum("idle")];
    """)
    whole, host, device = totals  # type: ignore[misc]
    assert host == whole and device >= whole
    colours = {rect.value_of_css_property("fill") for rect in model.find(".picture rect")}
    assert len(colours) >= 4 and "rgb(0, 0, 0)" not in colours, "each class has a colour of its own"


def test_a_click_in_the_picture_zooms_the_timeline_to_it(model: Page) -> None:
    before = model.view()
    rect = model.one(".picture svg:nth-of-type(1) rect")
    model.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", rect)
    ActionChains(model.driver).move_to_element(model.one(".picture svg")).perform()
    model.until(lambda: model.one("#tip").is_displayed())
    assert "of the step" in model.one("#tip").text
    press(model, rect)
    model.until(lambda: model.one("#selection").is_displayed())
    start, end = selected(model)
    shown = model.view()
    assert shown[0] <= start < end <= shown[1] and shown[1] - shown[0] < before[1] - before[0]
    data = model.script("return JSON.parse(document.getElementById('payload').textContent).picture")
    assert data["start"] <= start and end <= data["start"] + data["dur"]  # type: ignore[index, call-overload]


def test_the_whole_step_and_each_step_are_a_click_away(model: Page) -> None:
    model.click("#picture button.link")
    model.until(lambda: model.one("#selection").is_displayed())
    data = model.script("return JSON.parse(document.getElementById('payload').textContent).picture")
    start, end = selected(model)
    assert abs(end - start - data["dur"]) < 2  # type: ignore[index, call-overload]
    columns = model.find("#durations i")
    assert len(columns) > 4
    press(model, columns[2])
    model.until(lambda: selected(model)[0] != start)


def test_the_idle_time_is_a_picture_with_its_causes(model: Page) -> None:
    parts = model.find("#gpu-devices .shares .share")
    widths = sum(float(part.get_attribute("style").split("width:")[1].split("%")[0]) for part in parts)
    assert widths == pytest.approx(100, abs=0.5)
    legend = model.one("#gpu-devices .legend").text
    assert "kernels" in legend and "idle:" in legend


def test_slow_steps_are_explained(browser: webdriver.Chrome, pages: Path) -> None:
    page = Page(browser, pages / "tail.html").open()
    assert "spent 12.0 ms more in garbage collection at serve.py:41" in page.one("#slow-sentence").text
    assert "garbage collection" in page.one("#slow-rows tbody tr").text
    assert len(page.find("#durations i.slow")) == 2
    page.click("#slow-facts button.link")
    page.until(lambda: page.one("#selection").is_displayed())
    start, end = selected(page)
    assert abs(end - start - 20e6) < 2, "the slowest step is selected"
    assert page.errors() == []


@pytest.mark.parametrize("name", ["model", "tail"])
def test_a_finding_zooms_to_its_evidence(browser: webdriver.Chrome, pages: Path, name: str) -> None:
    page = Page(browser, pages / f"{name}.html").open()
    before = page.view()
    assert page.find(".finding button.link"), "evidence that has a time can be shown"
    page.click(".finding button.link")
    page.until(lambda: page.one("#selection").is_displayed())
    start, end = selected(page)
    shown = page.view()
    assert shown[0] <= start < end <= shown[1] and shown != before
    assert page.errors() == []
