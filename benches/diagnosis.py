"""What a diagnosis costs, from a file to its HTML report: files of torch.profiler beside HolisticTraceAnalysis, our own
traces of a GPU, and how the cost grows over three sizes, drawn as an SVG. benches/run.py puts the rows into its table;
alone, `diagnosis.py INFERSCOPE GENERATORS [--hta PYTHON]` prints just these (PYTHON: one with HTA installed)."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cost import MB, Cost, attempt, exponent, middle, once
from plot import draw
from table import Row, render

HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
# What HTA may take of the 2 GB file: ten minutes, and half of the memory that is free.
DEADLINE_S = 600
# TraceLens (AMD-AGI) is installed from its repository; `tracelens` on PyPI is another project, for testing agents.
TRACELENS = "TraceLens not measured: it is not on PyPI (the `tracelens` there is another project)"
# Three sizes in a row make a line; start-up and caches bend it by a little.
STRAIGHT = 1.1


@dataclass
class Tools:
    inferscope: Path
    generators: Path
    hta: Path | None
    folder: Path

    def ours(self, trace: Path) -> list[str | Path]:
        return [self.inferscope, "analyze", trace, "--format", "html", "--output", self.folder / "report.html"]

    def torch_file(self, events: int) -> Path:
        file = self.folder / f"{events}.json"
        once([self.generators / "generate_kineto", file, str(events)])
        return file

    def own_trace(self, events: int) -> Path:
        """Half of the events are calls, half are what they launched."""
        trace = self.folder / f"{events}"
        once([self.generators / "generate_gpu", trace, str(events // 2)])
        return trace


def free_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def beside_hta(tools: Tools, file: Path, rounds: int, deadline_s: float) -> tuple[Cost, str]:
    """Ours and theirs in turn, so that what else the machine does falls on both."""
    most = free_bytes() // 2
    ours, theirs, failed = [], [], None
    for _ in range(rounds):
        ours.append(once(tools.ours(file)))
        if tools.hta and not failed:
            cost = attempt([tools.hta, HERE / "hta_peer.py", file, str(most)], deadline_s)
            failed = None if isinstance(cost, Cost) else cost
            theirs += [cost] if isinstance(cost, Cost) else []
    cost = middle(ours)
    if failed:
        return cost, f"HTA {failed}; it was allowed {deadline_s:.0f} s and {most / MB:.0f} MB"
    if not theirs:
        return cost, "HTA not measured: not installed"
    peer = middle(theirs)
    ratios = (
        f"{peer.seconds / cost.seconds:.0f} times the time, {peer.peak_bytes / cost.peak_bytes:.0f} times the memory"
    )
    return cost, f"HTA {peer}: {ratios}"


def torch_files(tools: Tools, quick: bool) -> tuple[list[Row], list[tuple[int, Cost]]]:
    """Load, diagnosis and HTML of files as torch.profiler writes them: the two sizes that we promise, and one more."""
    rows, points = [], []
    promised = {130_000: (0.5, 150), 5 * MILLION: (15, 2000)}
    for events in (30_000, 130_000, 500_000) if quick else (130_000, MILLION, 5 * MILLION):
        file = tools.torch_file(events)
        if events in promised:
            seconds, mb = promised[events]
            rounds = 5 if events < MILLION else 1
            cost, peers = beside_hta(tools, file, 3 if quick else rounds, 60 if events < MILLION else DEADLINE_S)
            reached = cost.seconds <= seconds and cost.peak_bytes <= mb * MB
            peers = f"{peers}. {TRACELENS}" if events < MILLION else peers
            what = f"torch.profiler JSON of {events:,} events, {file.stat().st_size / 1e6:.0f} MB: diagnosis and HTML"
            rows.append(Row(what, f"≤ {seconds} s, ≤ {mb} MB", str(cost), reached, peers))
        else:
            cost = middle([once(tools.ours(file)) for _ in range(3)])
        points.append((events, cost))
        file.unlink()
    if quick:
        left = "not measured: left out by BENCH=quick"
        rows.append(Row("torch.profiler JSON of 5,000,000 events, 2 GB", "≤ 15 s, ≤ 2000 MB", left))
    return rows, points


def own_traces(tools: Tools, quick: bool) -> tuple[list[Row], list[tuple[int, Cost]]]:
    points = []
    for events in (100_000, 300_000, MILLION) if quick else (MILLION, 3 * MILLION, 10 * MILLION):
        trace = tools.own_trace(events)
        points.append((events, middle([once(tools.ours(trace)) for _ in range(3)])))
        shutil.rmtree(trace)
    what, target = "our own trace of 10 M events of a GPU: diagnosis and HTML", "≤ 5 s, ≤ 1 GB"
    if quick:
        return [Row(what, target, "not measured: left out by BENCH=quick")], points
    cost = points[-1][1]
    return [Row(what, target, str(cost), cost.seconds <= 5 and cost.peak_bytes <= 1e9)], points


def growth(lines: dict[str, list[tuple[int, Cost]]], plot: Path) -> list[Row]:
    """Linear is said of the work, which is processor time: what else the machine does weighs more on the longer run."""
    rows, drawn = [], {}
    for name, points in lines.items():
        time = [(events, cost.cpu_seconds) for events, cost in points]
        memory = [(events, float(cost.peak_bytes)) for events, cost in points]
        grows = exponent(time)
        each = "; ".join(f"{events:,}: {seconds:.2f} s" for events, seconds in time)
        measured = f"processor time ~ events^{grows:.2f}, memory ~ events^{exponent(memory):.2f} ({each})"
        rows.append(Row(f"cost of a diagnosis, {name}", f"linear: ≤ events^{STRAIGHT}", measured, grows <= STRAIGHT))
        drawn[f"{name}: events^{grows:.2f}"] = time
    plot.parent.mkdir(parents=True, exist_ok=True)
    plot.write_text(draw(drawn, "processor time of load, diagnosis and HTML"))
    print(f"  the plot of three sizes: {plot}", flush=True)
    return rows


def diagnosis(inferscope: Path, generators: Path, hta: Path | None, plot: Path, quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="inferscope-bench-") as name:
        tools = Tools(inferscope, generators, hta, Path(name))
        torch_rows, torch_points = torch_files(tools, quick)
        own_rows, own_points = own_traces(tools, quick)
        lines = {"torch.profiler JSON": torch_points, "our own trace": own_points}
        return [*torch_rows, *own_rows, *growth(lines, plot)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("inferscope", type=Path)
    options.add_argument("generators", type=Path, help="target/release/examples")
    options.add_argument("--hta", type=Path)
    options.add_argument("--plot", type=Path, default=Path("target/bench/cost.svg"))
    options.add_argument("--quick", action="store_true")
    chosen = options.parse_args()
    hta = chosen.hta.absolute() if chosen.hta else None
    paths = (chosen.inferscope.absolute(), chosen.generators.absolute(), hta, chosen.plot)
    print(render(diagnosis(*paths, chosen.quick)))


if __name__ == "__main__":
    main()
