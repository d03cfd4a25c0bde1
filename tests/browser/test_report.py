"""The HTML report as a person uses it: read, zoom, search, select, jump, share."""

from __future__ import annotations

from pathlib import Path

from conftest import Page
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys


def test_the_answer_comes_first_and_everything_is_drawn(page: Page) -> None:
    assert len(page.find("#answer p")) == 3
    assert "request" in page.one("#answer p").text
    assert page.find(".finding"), "the planted problem is found"
    assert page.find("#phases-rows .part") and page.find("#waterfall .part")
    assert page.is_painted("#timeline") and page.is_painted("#flame")
    assert page.find("#health li")


def test_what_else_was_considered_stands_below_the_findings(page: Page, payload: dict) -> None:
    shown = [item.text for item in page.find("#considered li")]
    assert shown == [f"{one['code']} {one['against']}" for one in payload["considered"]]
    assert page.one("#considered-part").is_displayed() == bool(shown)


def test_the_planted_line_is_named(page: Page) -> None:
    text = page.one("#findings").text
    assert "workload.py" in text and ("compile" in text or "_compile" in text)


def test_parts_of_the_step_add_up(payload: dict) -> None:
    assert sum(part["ns"] for part in payload["waterfall"]) > 0
    names = [phase["label"] for phase in payload["phases"]]
    assert names[0] == "tokenise"


def test_no_name_becomes_markup(page: Page, path: Path) -> None:
    assert page.script("return window.injected") is None
    assert "<img src=x" not in path.read_text(encoding="utf-8").split("<body>")[1]
    assert "<img src=x" in page.one("#scopes").text


def test_keys_zoom_and_move(page: Page) -> None:
    page.click("#timeline")
    page.keys("0")
    page.until(lambda: page.view()[0] <= 0)
    whole = page.view()
    page.keys("w")
    page.until(lambda: page.view()[1] - page.view()[0] < (whole[1] - whole[0]) * 0.7)
    zoomed = page.view()
    page.keys("d")
    page.until(lambda: page.view()[0] > zoomed[0])
    page.keys("a")
    page.until(lambda: abs(page.view()[0] - zoomed[0]) < 2)
    page.keys(Keys.ARROW_LEFT)
    page.until(lambda: page.view()[0] < zoomed[0] - 2)
    page.keys("s")
    page.until(lambda: page.view()[1] - page.view()[0] > zoomed[1] - zoomed[0])


def test_help_opens_and_closes(page: Page) -> None:
    page.keys("?")
    page.until(lambda: page.one("#help").is_displayed())
    page.click("#help-close")
    page.until(lambda: not page.one("#help").is_displayed())


def test_search_goes_from_hit_to_hit(page: Page) -> None:
    page.keys("/")
    page.keys("tokenise")
    page.keys(Keys.ENTER)
    page.until(lambda: page.one("#selection").is_displayed())
    first = page.view()
    assert "tokenise" in page.one("#selection-slices").text
    page.keys(Keys.ENTER)
    page.until(lambda: page.view()[0] > first[0])


def test_a_selected_range_shows_its_contents_and_its_flame_graph(page: Page) -> None:
    canvas = page.one("#timeline")
    page.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    actions = ActionChains(page.driver).key_down(Keys.SHIFT).move_to_element_with_offset(canvas, -100, 0)
    actions.click_and_hold().move_by_offset(300, 0).release().key_up(Keys.SHIFT).perform()
    page.until(lambda: page.one("#selection").is_displayed())
    assert "selected" in page.one("#selection-title").text
    assert page.find("#selection-functions td"), "running functions of the range"
    assert "selected" in page.one("#flame-range").text
    assert "s=" in str(page.script("return location.hash"))
    page.click("#clear")
    page.until(lambda: not page.one("#selection").is_displayed())
    assert "whole" in page.one("#flame-range").text


def test_a_link_restores_the_view(page: Page) -> None:
    page.open("#v=200000000,400000000&s=250000000,300000000&q=tokenise")
    page.until(lambda: page.one("#selection").is_displayed())
    start, end = page.view()
    assert abs(start - 2e8) < 2 and abs(end - 4e8) < 2
    assert page.one("#search").get_attribute("value") == "tokenise"


def test_a_finding_jumps_to_its_evidence(page: Page) -> None:
    before = page.view()
    page.click(".finding button.link")
    page.until(lambda: page.one("#selection").is_displayed())
    assert page.view() != before


def test_the_flame_graph_turns_over_and_zooms(page: Page) -> None:
    tall = page.one("#flame").size["height"]
    page.click("#inverted")
    page.until(lambda: page.is_painted("#flame"))
    page.click("#inverted")
    page.until(lambda: page.one("#flame").size["height"] == tall)
    page.click("#idle")
    page.until(lambda: page.is_painted("#flame"))


def test_tables_sort_and_filter(page: Page) -> None:
    rows = page.find("#functions tbody tr")
    assert len(rows) > 3
    shares = [float(row.find_elements("tag name", "td")[2].text.split()[0]) for row in rows]
    assert shares == sorted(shares, reverse=True)
    page.script("document.querySelector('#functions th.number button').click()")
    page.until(lambda: page.one("#functions th.number").get_attribute("aria-sort") == "ascending")
    page.click("#functions-filter")
    page.keys("compile")
    page.until(lambda: all("compile" in row.text for row in page.find("#functions tbody tr")))


def test_light_and_dark(page: Page) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = page.script(colour)
    page.click("#theme")
    page.until(lambda: page.script(colour) != before)
    page.until(lambda: page.is_painted("#timeline"))


def test_phone_width_has_no_sideways_scroll(page: Page) -> None:
    page.driver.set_window_size(420, 900)
    page.open()
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    page.until(lambda: int(str(page.script(wide))) <= 1)
    assert page.is_painted("#timeline")


def test_the_page_needs_no_network(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text
