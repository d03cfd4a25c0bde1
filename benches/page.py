"""The HTML report in a real browser (Debian's chromium, without a GPU): how long it takes to open, and whether it pans
at 60 frames a second. Drives the page's own keys and reads the browser's own clock.

Runs where selenium is installed; prints its figures as JSON for benches/analysis.py, or why there are none."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

OPENINGS = 5
FRAMES = 120
FLAGS = [
    "headless=new",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-sync",
    "disable-background-networking",
    "disable-component-update",
    "window-size=1280,900",
]

# The browser notes when the page says that it is ready, and when what it drew then is on the screen, counted from the
# start of the navigation.
WATCH = """
new MutationObserver(() => {
  if (!document.documentElement?.dataset.ready || window.readyAfter) return;
  window.readyAfter = performance.now();
  requestAnimationFrame(() => requestAnimationFrame(() => (window.drawnAfter = performance.now())));
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-ready"] });
"""

# Zooms in by a key, then pans with a key in each frame, back and forth; gives the time between frames.
PAN = """
const [zooms, frames, done] = arguments;
const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
document.getElementById("timeline").scrollIntoView({ block: "center", behavior: "instant" });
press("0");
for (let i = 0; i < zooms; i++) press("w");
const times = [];
const frame = (now) => {
  times.push(now);
  if (times.length > frames) return done(times.slice(1).map((time, index) => time - times[index]));
  press(times.length % 12 < 6 ? "d" : "a");
  requestAnimationFrame(frame);
};
setTimeout(() => requestAnimationFrame(frame), 300);
"""


def browser(chromium: str, chromedriver: str, profile: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS, f"user-data-dir={profile}"]:
        options.add_argument(f"--{flag}")
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))


def measure(driver: webdriver.Chrome, page: Path) -> dict[str, Any]:
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    ready, drawn = [], []
    for _ in range(OPENINGS):
        driver.get("about:blank")
        driver.get(page.as_uri())
        wait = WebDriverWait(driver, 60, poll_frequency=0.05)
        drawn.append(wait.until(lambda found: found.execute_script("return window.drawnAfter")))
        ready.append(driver.execute_script("return window.readyAfter"))
    frames = {}
    for name, zooms in (("everything", 0), ("a fifth", 3), ("a hundredth", 9)):
        driver.set_script_timeout(120)
        times = sorted(driver.execute_async_script(PAN, zooms, FRAMES))
        frames[name] = {"median_ms": statistics.median(times), "p95_ms": times[int(len(times) * 0.95)]}
    return {
        "ready_ms": statistics.median(ready),
        "drawn_ms": {"median": statistics.median(drawn), "worst": max(drawn)},
        "frames": frames,
        "browser": driver.capabilities["browserVersion"],
    }


def main() -> None:
    page = Path(sys.argv[1]).resolve()
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        print(json.dumps({"missing": "no chromium and chromedriver here: apt-get install chromium chromium-driver"}))
        return
    with tempfile.TemporaryDirectory(prefix="inferscope-bench-", ignore_cleanup_errors=True) as profile:
        driver = browser(chromium, chromedriver, profile)
        try:
            print(json.dumps(measure(driver, page)))
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
