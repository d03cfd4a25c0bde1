"""`make gpu-suite SEEDS=0-39`: generates the programs of seeds, records each as a user would, measures its fix without
us, and says how many steps, verdicts and gains were right. Writes results.json, and traces.tar.gz with what fits. Seeds
from 10,000 on are for reporting: each is looked at once, and reported_seeds.txt keeps which were."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))

import seeds_judge
from analysis import analyse
from generate.program import source
from generate.recipe import Recipe, recipe
from machine import inferscope, require_gpu

HERE = Path(__file__).resolve().parent
REPORTED = HERE / "reported_seeds.txt"
FIRST_REPORTED = 10_000
# Start-up, building the model, and the steps; a loaded machine takes a few times as long.
RECORD_SECONDS = 60
MOST_BYTES = 14_000_000


def numbers(text: str) -> list[int]:
    """`3,7,20-29` as numbers."""
    found: list[int] = []
    for part in text.replace(" ", ",").split(","):
        if part:
            low, _, high = part.partition("-")
            found += range(int(low), int(high or low) + 1)
    return found


def repeated(wanted: list[int], listed: Path = REPORTED) -> list[int]:
    """Those that were reported before."""
    known = {int(line) for line in listed.read_text(encoding="utf-8").split()} if listed.exists() else set()
    return sorted(known & set(wanted))


class Seeds:
    def __init__(self, options: argparse.Namespace, out: Path, folder: Path) -> None:
        self.options, self.out, self.folder = options, out, folder
        self.command, self.environ = inferscope() if not options.command else (Path(options.command), dict(os.environ))
        self.server: subprocess.Popen[str] | None = None
        self.rows: list[dict[str, Any]] = []

    def record(self, program: Path, folder: Path) -> dict[str, Any]:
        words = [self.command, "run", "--quiet", "--output", folder, "--", sys.executable, program.name]
        text = ended(
            [*map(str, words), "--seconds", str(self.options.seconds)], program.parent, self.environ, RECORD_SECONDS
        )
        lines = [line for line in text.splitlines() if line.startswith('{"steps"')]
        assert lines, f"the program printed no steps: {text[-400:]}"
        told: dict[str, Any] = json.loads(lines[-1])
        return told

    def measure(self, program: Path, fixes: int) -> dict[str, Any]:
        if self.server is None or self.server.poll() is not None:
            environ = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
            self.server = subprocess.Popen(
                [sys.executable, HERE / "forks.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(self.out / "measuring.txt").open("a"),
                text=True,
                env=environ,
                cwd=program.parent,
            )
        assert self.server.stdin and self.server.stdout
        asked = {"file": str(program), "seconds": self.options.both_seconds, "fixes": fixes}
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        line = self.server.stdout.readline()
        assert line, "the process that measures has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def one(self, made: Recipe) -> dict[str, Any]:
        """Records and measures; what the analysis says comes later. Whatever goes wrong is a row, too."""
        began = time.monotonic()
        row = made.row()
        program = self.folder / "programs" / f"{made.name}.py"
        program.parent.mkdir(exist_ok=True)
        try:
            program.write_text(source(made), encoding="utf-8")
            row["true"] = self.record(program, self.folder / made.name)
            row["recorded_s"] = round(time.monotonic() - began, 1)
            # Where nothing is planted, that the process that measures can run it is seen as well.
            row["measured"] = self.measure(program, len(made.faults) if made.fixable else 0)
            row["measured_s"] = round(time.monotonic() - began - row["recorded_s"], 1)
        except Exception as error:
            row["error"] = traceback.format_exc(limit=-2) if not isinstance(error, AssertionError) else str(error)
        return row

    def analysed(self, row: dict[str, Any]) -> dict[str, Any]:
        folder = self.folder / f"seed_{row['seed']}"
        if "error" in row:
            return row
        try:
            row |= seeds_judge.told(analyse(self.command, folder, self.environ))
        except Exception:
            row["error"] = traceback.format_exc(limit=-2)
        return row

    def finish(self, machine: str) -> None:
        if self.server and self.server.stdin:
            self.server.stdin.close()
            self.server.wait()
        save(self.out, machine, self.rows)
        packed(self.folder, self.rows, self.out / "traces.tar.gz")
        if any(row["seed"] >= FIRST_REPORTED for row in self.rows):
            # For the repository, where the run may have been on a copy of it.
            (self.out / REPORTED.name).write_text(REPORTED.read_text(encoding="utf-8"), encoding="utf-8")
        text = "\n".join(seeds_judge.table(self.rows))
        print(text, flush=True)
        (self.out / "results.txt").write_text(text + "\n", encoding="utf-8")


def ended(words: list[str], folder: Path, environ: dict[str, str], seconds: float) -> str:
    """What the command printed; after so many seconds, it and all it started are ended."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            words, stdout=said, stderr=subprocess.STDOUT, text=True, env=environ, cwd=folder, start_new_session=True
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            late = process.poll() is None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        text = said.read()
    assert not late, f"still running after {seconds} s: {text[-400:]}"
    assert process.returncode == 0, f"the recorded run ended with {process.returncode}: {text[-800:]}"
    return text


def save(out: Path, machine: str, rows: list[dict[str, Any]]) -> None:
    document = {"machine": machine, "figures": seeds_judge.figures(rows), "rows": rows}
    (out / "results.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def packed(folder: Path, rows: list[dict[str, Any]], archive: Path) -> None:
    """Small traces first, until the archive is full; what was left out is said."""
    sizes = {}
    for row in rows:
        trace = folder / f"seed_{row['seed']}"
        if trace.exists():
            kept = [file for file in trace.iterdir() if file.suffix == ".parquet" or file.name == "manifest.json"]
            sizes[row["seed"]] = (sum(file.stat().st_size for file in kept), sorted(kept))
    total, left = 0, []
    with tarfile.open(archive, "w:gz") as whole:
        whole.add(archive.with_name("results.json"), arcname="results.json")
        for program in sorted((folder / "programs").glob("seed_*.py")):
            whole.add(program, arcname=f"{program.stem}/{program.name}")
        for seed, (size, kept) in sorted(sizes.items(), key=lambda pair: pair[1][0]):
            if total + size > MOST_BYTES:
                left.append(seed)
                continue
            total += size
            for file in kept:
                whole.add(file, arcname=f"seed_{seed}/{file.name}")
    print(f"{archive}: {archive.stat().st_size} bytes; traces left out for their size: {left or 'none'}", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", required=True, help="which ones: 3,7,20-29")
    options.add_argument("--out", type=Path, help="where results go [default: $OUT, else ./gpu-results]")
    options.add_argument("--seconds", type=float, default=1.2, help="the longest that steps are recorded")
    options.add_argument("--both-seconds", type=float, default=1.2, help="how long planted and fixed are measured")
    options.add_argument("--budget-s", type=float, default=480, help="no program is begun after so many seconds")
    options.add_argument("--command", help="the inferscope to run [default: that of the wheel in dist/, else on PATH]")
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options.add_argument("--small", action="store_true", help="tiny sizes")
    options.add_argument("--own", action="store_true", help="no models of torchvision, transformers or JAX")
    options.add_argument("--again", action="store_true", help="seeds that were reported before, too")
    chosen = options.parse_args()
    wanted = numbers(chosen.seeds)
    before = repeated(wanted)
    if before and not chosen.again:
        raise SystemExit(f"already reported, and so not fresh: {before} (--again runs them nevertheless)")
    machine = "no GPU" if chosen.device == "cpu" else require_gpu("gpu-suite")
    out = (chosen.out or Path(os.environ.get("OUT") or "gpu-results")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="inferscope-seeds-") as folder:
        run = Seeds(chosen, out, Path(folder))
        # The analysis of one program overlaps with the start of the next: neither uses the GPU then.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting: list[concurrent.futures.Future[dict[str, Any]]] = []
            for seed in wanted:
                if time.monotonic() - began > chosen.budget_s:
                    print(f"the time was spent before seed {seed}", flush=True)
                    break
                row = run.one(recipe(seed, chosen.device, chosen.small, not chosen.own))
                if seed >= FIRST_REPORTED and not repeated([seed]):
                    with REPORTED.open("a", encoding="utf-8") as file:
                        print(seed, file=file)
                waiting.append(pool.submit(run.analysed, row))
                while waiting and (waiting[0].done() or len(waiting) > 2):
                    run.rows.append(waiting.pop(0).result())
                    print(f"[{time.monotonic() - began:6.1f} s] {seeds_judge.line(run.rows[-1])}", flush=True)
                    save(out, machine, run.rows)
            for future in waiting:
                run.rows.append(future.result())
                print(f"[{time.monotonic() - began:6.1f} s] {seeds_judge.line(run.rows[-1])}", flush=True)
        run.finish(machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
