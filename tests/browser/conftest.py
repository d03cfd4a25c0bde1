"""A real browser (Debian's chromium) on real reports: recorded here, written by the installed command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

INFERSCOPE = Path(sysconfig.get_path("scripts")) / "inferscope"

# Requests with scopes and events on two threads, long enough for a few hundred samples.
WORKLOAD = """
import re, threading, time
from inferscope import mark_event, scope, step

def compile_pattern(number):
    re.purge()
    return re.compile("|".join(f"w{i}x{number}" for i in range(60)))

def handle(number):
    with step("request"):
        with scope("tokenise", tags={"n": number}):
            compile_pattern(number)
        with scope("<img src=x onerror=window.injected=1>"):
            sum(i * i for i in range(20000))
        mark_event("</script><script>window.injected=1</script>", metadata={"n": number})

def background():
    for _ in range(40):
        with scope("poll"):
            time.sleep(0.02)

thread = threading.Thread(target=background, name="poller")
thread.start()
until = time.monotonic() + 1.5
number = 0
while time.monotonic() < until:
    handle(number)
    number += 1
thread.join()
"""


class Page:
    """A report in the browser, and what a person does with it."""

    def __init__(self, driver: webdriver.Chrome, path: Path) -> None:
        self.driver = driver
        self.path = path

    def open(self, fragment: str = "") -> Page:
        self.driver.get("about:blank")
        self.driver.get(f"file://{self.path}{fragment}")
        self.until(lambda: self.script("return document.documentElement.dataset.ready") == "yes")
        return self

    def script(self, text: str, *arguments: object) -> object:
        return self.driver.execute_script(text, *arguments)

    def until(self, true: Callable[[], object]) -> None:
        WebDriverWait(self.driver, 20).until(lambda _: true())

    def find(self, selector: str) -> list:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """As a person: brings it into view, clear of the bar on top, then clicks."""
        found = self.one(selector)
        self.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
        found.click()

    def keys(self, text: str) -> None:
        self.driver.switch_to.active_element.send_keys(text)

    def view(self) -> tuple[float, float]:
        """The visible range, from the address bar."""
        address = str(self.script("return location.hash"))
        start, end = address.split("v=")[1].split("&", maxsplit=1)[0].split(",")
        return float(start), float(end)

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def is_painted(self, selector: str) -> bool:
        """Whether a canvas shows more than a plain colour, which packs into a few hundred bytes."""
        return len(str(self.script("return document.querySelector(arguments[0]).toDataURL()", selector))) > 3000


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium and chromedriver, "the report's tests need a browser: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    folder = tmp_path_factory.mktemp("profile")
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"):
        options.add_argument(f"--{flag}")
    for flag in ("disable-background-networking", "disable-component-update", f"user-data-dir={folder}"):
        options.add_argument(f"--{flag}")
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    script = folder / "workload.py"
    script.write_text(WORKLOAD, encoding="utf-8")
    command = [INFERSCOPE, "run", "--quiet", "--output", folder / "trace", "--", sys.executable, script]
    subprocess.run(command, check=True, timeout=100)
    return folder / "trace"


def report(trace: Path, *options: str) -> Path:
    path = trace.parent / f"{trace.name}.html"
    command = [INFERSCOPE, "analyze", trace, "--format", "html", "--output", path, "--quiet", *options]
    subprocess.run(command, check=True, timeout=100)
    return path


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, rust_example: Callable[[str], Path]) -> Path:
    """Pages of the timelines of the `report` crate's own tests."""
    folder = tmp_path_factory.mktemp("pages")
    subprocess.run([rust_example("pages"), folder], check=True)
    return folder


@pytest.fixture(scope="session")
def path(trace: Path) -> Path:
    return report(trace)


@pytest.fixture
def page(browser: webdriver.Chrome, path: Path) -> Iterator[Page]:
    browser.set_window_size(1280, 900)
    page = Page(browser, path).open()
    yield page
    assert page.errors() == []


@pytest.fixture(scope="session")
def payload(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    inside = text.split('<script type="application/json" id="payload">')[1].split("</script>")[0]
    return json.loads(inside)
