"""`make gpu-suite`: records every program of tests/workloads with the command's defaults, analyses it, and measures its
fix without us; then says how many verdicts were right, how sure they were, and how far predicted gains are off. Writes
suite.json, and suite.tar.gz with every trace, for `unpack.py`. Needs PyTorch and a wheel in dist/."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

import judge
from analysis import analyse
from catalogue import WORKLOADS, Program, programs
from machine import inferscope, require_gpu
from pack import MOST_BYTES, Pack
from results import Results


class Suite:
    def __init__(self, options: argparse.Namespace, results: Results, folder: Path) -> None:
        self.options, self.results, self.folder = options, results, folder
        self.command, self.environ = inferscope()
        self.size = ["--device", "cpu", "--small"] if options.cpu else []
        self.pack = Pack(results.folder / "suite.tar.gz")
        self.verdicts: list[judge.Verdict] = []
        self.measured: dict[str, dict[str, Any]] = {}
        self.plain: subprocess.Popen[str] | None = None

    def call(self, words: list[object], seconds: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            env=self.environ,
            cwd=WORKLOADS,
            timeout=seconds,
        )

    def record(self, program: Program) -> tuple[Path, dict[str, Any]]:
        folder = self.folder / program.name
        words = [sys.executable, program.file, "--seconds", self.options.seconds, *self.size]
        done = self.call([self.command, "run", "--quiet", "--output", folder, "--", *words])
        assert done.returncode == 0, f"the recorded run ended with {done.returncode}: {done.stderr[-600:]}"
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return folder, json.loads(lines[-1])

    def measure(self, program: Program) -> dict[str, Any]:
        """Planted against fixed, in a process that knows nothing of us."""
        if program.expect == judge.HEALTHY:
            return {"gain_percent": None}
        if self.plain is None or self.plain.poll() is not None:
            environ = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
            self.plain = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("plain.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environ,
                cwd=WORKLOADS,
            )
        assert self.plain.stdin and self.plain.stdout
        device, small = ("cpu", "small") if self.options.cpu else ("cuda", "large")
        print(program.name, self.options.both_seconds, device, small, file=self.plain.stdin, flush=True)
        line = self.plain.stdout.readline()
        assert line, "the process that measures has ended"
        found: dict[str, Any] = json.loads(line)
        if "failed" in found:
            self.results.say(f"     {program.name} could not be measured: {found['failed']}")
        return found

    def one(self, program: Program) -> None:
        began = time.monotonic()
        folder, ran = self.record(program)
        recorded = time.monotonic() - began
        analysis = analyse(self.command, folder, self.environ)
        verdict = judge.judge(program, analysis)
        measured = self.measure(program)
        size = self.pack.add(program, folder)
        self.verdicts.append(verdict)
        self.measured[program.name] = measured | {
            "recorded_p50_us": ran["p50_us"],
            "steps_recorded": len(ran["steps_us"]),
        }
        off = judge.error(verdict, measured)
        predicted = "none" if verdict.gain is None else f"{verdict.gain['mid']:.0f}"
        gained = "none" if measured.get("gain_percent") is None else f"{measured['gain_percent']:.0f}"
        spread = f" ({measured['low']:.0f} to {measured['high']:.0f})" if "low" in measured else ""
        self.results.say(
            f"{'right' if verdict.right else 'WRONG'} {program.name}: {verdict.said}"
            f"{'' if verdict.right else f' instead of {program.expect}'}, sure {verdict.confidence or 0:.2f}; "
            f"gain {predicted} predicted, {gained}{spread} measured{'' if off is None else f', off by {off:.0f}'}; "
            f"step {ran['p50_us'] / 1000:.2f} ms, {len(ran['steps_us'])} of them, "
            f"plain {measured.get('planted_us', 0) / 1000:.2f} ms; "
            f"unknown {verdict.unknown_percent} %, replay off {verdict.replay_percent} %; {size // 1024} KiB; "
            f"{recorded:.1f} + {time.monotonic() - began - recorded:.1f} s"
        )
        if not verdict.right:
            for found in analysis["findings"][:5]:
                self.results.say(f"       {found['code']} {found['gain_percent']} {found['title'][:110]}")

    def finish(self) -> None:
        if self.plain and self.plain.stdin:
            self.plain.stdin.close()
            self.plain.wait()
        found = judge.figures(self.verdicts, self.measured)
        rows = [
            verdict.row() | {"error_points": judge.error(verdict, self.measured[verdict.program.name])}
            for verdict in self.verdicts
        ]
        document = {
            "machine": self.results.document["machine"],
            "figures": found,
            "verdicts": rows,
            "measured": self.measured,
        }
        text = json.dumps(document, indent=1, ensure_ascii=False)
        (self.results.folder / "suite.json").write_text(text + "\n", encoding="utf-8")
        size = self.pack.close(text)
        if self.verdicts:
            self.results.say("expected → said:")
            for line in judge.matrix(self.verdicts):
                self.results.say(line)
        for name, value in found.items():
            self.results.figure(name, value)
        self.results.figure("suite.tar.gz", size, "bytes")

        def reached() -> None:
            lines = judge.missed(found)
            assert not lines, "; ".join(lines)

        def fits() -> None:
            assert size <= MOST_BYTES, f"{size} bytes, at most {MOST_BYTES} go into the repository"

        self.results.check("the traces fit into the repository", fits)
        self.results.check("the figures to reach", reached)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", help="where results go [default: $OUT, else ./gpu-results]")
    options.add_argument("--only", default="", help="some programs, by name, with commas")
    options.add_argument("--seconds", type=float, default=1.2, help="the longest that a program is recorded")
    options.add_argument("--both-seconds", type=float, default=1.5, help="how long planted and fixed are measured")
    options.add_argument("--budget", type=float, default=540, help="no program is begun after so many seconds")
    options.add_argument("--cpu", action="store_true", help="without a GPU, tiny: only to see that all of it runs")
    chosen = options.parse_args()
    if chosen.out:
        os.environ["OUT"] = str(Path(chosen.out).resolve())
    every = programs(chosen.only)
    machine = "no GPU: a dry run" if chosen.cpu else require_gpu("gpu-suite")
    results = Results("gpu-suite", machine, chosen.cpu)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="inferscope-suite-") as folder:
        suite = Suite(chosen, results, Path(folder))
        for program in every:
            if time.monotonic() - began > chosen.budget:
                results.check(f"{program.name} was begun", lambda: _fail("the time was spent: --only begins here"))
                continue
            results.check(program.name, lambda program=program: suite.one(program))
        suite.finish()
    return results.finish()


def _fail(text: str) -> None:
    raise AssertionError(text)


if __name__ == "__main__":
    sys.exit(main())
