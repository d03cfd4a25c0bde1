"""The page of a model on the CPU, written by the `report` crate from a timeline of its own tests: operators with shapes
and modules, layers by the CPU's time, and what else was considered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Page
from selenium import webdriver


@pytest.fixture
def encoder(browser: webdriver.Chrome, pages: Path) -> Iterator[Page]:
    browser.set_window_size(1280, 900)
    page = Page(browser, pages / "encoder.html").open()
    yield page
    assert page.errors() == []


def cells(page: Page, table: str) -> list[list[str]]:
    return [[cell.text for cell in row.find_elements("tag name", "td")] for row in page.find(f"{table} tbody tr")]


def test_operators_have_shapes_times_and_modules(encoder: Page) -> None:
    assert encoder.one("#operators-section").is_displayed()
    assert "mean of 2 steps with recorded operators" in encoder.one("#operators-note").text
    first, second = cells(encoder, "#operators")[:2]
    assert first[:3] == ["addmm", "[192] [768, 64] [64, 192]", "float32"]
    assert first[4:6] == ["6.00 ms", "2"] and first[8:] == ["serve.py:16", "layers.*.qkv"]
    assert second[0] == "_softmax"
    encoder.click("#operators-filter")
    encoder.keys("embed")
    encoder.until(lambda: [row[0] for row in cells(encoder, "#operators")] == ["embedding"])


def test_layers_have_the_time_of_the_cpu(encoder: Page) -> None:
    assert "by own CPU time, mean of 2 calls of the model" in encoder.one("#layers-note").text
    rows = {row[0]: row[1:] for row in cells(encoder, "#layers")}
    assert rows["layers.0"] == ["14.5 %", "1.60 ms", "4.60 ms", "1"]
    links = [link.text for link in encoder.find("nav a") if link.is_displayed()]
    assert "Operators" in links and "Layers" in links and "Kernels" not in links


def test_what_else_was_considered_is_said(encoder: Page) -> None:
    part = encoder.one("#considered-part")
    assert part.is_displayed() and part.text.startswith("Also considered")
    assert encoder.find("#considered li code")


def test_a_page_with_a_gpu_has_its_layers_by_kernels_and_no_such_operators(
    browser: webdriver.Chrome, pages: Path
) -> None:
    page = Page(browser, pages / "model.html").open()
    assert not page.one("#operators-section").is_displayed()
    assert "by kernel time" in page.one("#layers-note").text
    assert page.errors() == []
