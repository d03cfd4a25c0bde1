"""What a reader waits for: `inferscope analyze` over traces of a million and of ten million events, the HTML report of
the first one and that page in a browser, and the command's cold start. diagnosis.py has GPUs and other tools' files.
benches/run.py puts the rows into its table; alone, `analysis.py INFERSCOPE GENERATE PYTHON` prints just these
(PYTHON: one with selenium, for the browser)."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from cost import MB, once, typical
from table import Row, render

MILLION = 1_000_000
# At 60 Hz a frame is there every 16.7 ms; a browser rounds by a tenth.
FRAME_MS = 16.8


def cold(inferscope: Path) -> list[Row]:
    rows = []
    for words in (["--help"], ["config", "show"]):
        ms = typical([inferscope, *words], 31).seconds * 1000
        rows.append(Row(f"cold `inferscope {' '.join(words)}`", "≤ 20 ms median", f"{ms:.1f} ms", ms <= 20))
    return rows


def page(python: Path, report: Path) -> list[Row]:
    what = "the page of a million events "
    opens, pans = (f"{what}opens in chromium", "≤ 1 s"), (f"{what}pans in chromium", "60 fps: 16.7 ms a frame")
    script = Path(__file__).parent / "page.py"
    if subprocess.run([python, "-c", "import selenium"], capture_output=True).returncode:
        why = "not measured: no selenium in this Python"
        return [Row(*opens, why), Row(*pans, why)]
    done = subprocess.run([python, script, report], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{script.name} failed with {done.returncode}")
    r = json.loads(done.stdout.strip().splitlines()[-1])
    if why := r.get("missing"):
        return [Row(*opens, f"not measured: {why}"), Row(*pans, f"not measured: {why}")]
    ready, drawn, frames = r["ready_ms"], r["drawn_ms"], r["frames"]
    opened = f"{ready / 1000:.2f} s until ready, {drawn['median'] / 1000:.2f} s until drawn "
    opened += f"(worst {drawn['worst'] / 1000:.2f} s)"
    each = "; ".join(f"{name}: {of['median_ms']:.1f} / {of['p95_ms']:.1f}" for name, of in frames.items())
    smooth = all(of["median_ms"] <= FRAME_MS for of in frames.values())
    how = f"chromium {r['browser'].split('.')[0]}, headless, drawn by the CPU"
    return [
        Row(*opens, opened, drawn["median"] <= 1000, how),
        Row(*pans, f"median / p95 ms while showing {each}", smooth, how),
    ]


def analysis(inferscope: Path, generate: Path, python: Path, quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="inferscope-bench-") as name:
        folder = Path(name)
        small, large, report = folder / "million", folder / "ten-million", folder / "report.html"
        once([generate, small, str(MILLION)])
        plain = typical([inferscope, "analyze", small], 5)
        html = typical([inferscope, "analyze", small, "--format", "html", "--output", report], 5)
        size = report.stat().st_size
        rows = [
            Row(
                "open, merge, analyse 1 M events",
                "≤ 1 s, ≤ 300 MB",
                f"{plain.seconds:.2f} s, {plain.peak_bytes / MB:.0f} MB",
                plain.seconds <= 1 and plain.peak_bytes <= 300 * MB,
            ),
            Row(
                "the same with the HTML report",
                "≤ 2 s; file ≤ 5 MB",
                f"{html.seconds:.2f} s, {html.peak_bytes / MB:.0f} MB; file {size / 1e6:.2f} MB",
                html.seconds <= 2 and size <= 5e6,
            ),
            *page(python, report),
        ]
        what, target = "open, merge, analyse 10 M events", "≤ 10 s, ≤ 1.5 GB; linear"
        if quick:
            return [*rows, Row(what, target, "not measured: left out by BENCH=quick"), *cold(inferscope)]
        once([generate, large, str(10 * MILLION)])
        plain10 = typical([inferscope, "analyze", large], 3)
        # Linear is said of the work, which is CPU time: what else the machine does weighs more on the longer run.
        ratio = plain10.cpu_seconds / plain.cpu_seconds
        measured = f"{plain10.seconds:.2f} s, {plain10.peak_bytes / MB:.0f} MB; "
        measured += f"{ratio:.1f} times the CPU time of 1 M, {plain10.seconds / plain.seconds:.1f} times its wall time"
        # A fifth above ten times is what caches make of a straight line.
        within = plain10.seconds <= 10 and plain10.peak_bytes <= 1.5e9 and ratio <= 12
        return [*rows, Row(what, target, measured, within), *cold(inferscope)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name in ("inferscope", "generate", "python"):
        options.add_argument(name, type=Path)
    options.add_argument("--quick", action="store_true")
    chosen = options.parse_args()
    paths = (path.absolute() for path in (chosen.inferscope, chosen.generate, chosen.python))
    print(render(analysis(*paths, chosen.quick)))


if __name__ == "__main__":
    main()
