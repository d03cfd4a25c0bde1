"""Runs one module of CPython's tests as it is, or under `inferscope run`, and says what became of each test. Both runs
have the same environment, and folders of their own with names of the same length."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ONE_MODULE = Path(__file__).resolve().parent / "one_module.py"
# The longest takes two minutes; who takes ten hangs.
PATIENCE_S = 600
HUNG = "did not end"
DIED = "the process died in it"


@dataclass
class Run:
    """Outcomes by test. A test that ran twice under one name has both, in their order."""

    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    #: This Python comes without the module.
    missing: bool = False
    #: Why this run proves nothing, or "".
    fault: str = ""


@dataclass(frozen=True)
class Way:
    """How a module is run: plain without a command, else under it."""

    python: Path
    inferscope: Path | None = None
    options: tuple[str, ...] = ()

    def run(self, module: str, *tests: str) -> Run:
        with tempfile.TemporaryDirectory(prefix="cpython-") as name:
            folder = Path(name)
            try:
                return self._run(folder, module, tests)
            finally:
                # What a test left without rights is removed all the same.
                subprocess.run(["chmod", "-R", "u+rwX", folder], capture_output=True)

    def _run(self, folder: Path, module: str, tests: tuple[str, ...]) -> Run:
        here, temporary, file, trace = folder / "h", folder / "t", folder / "outcomes", folder / "trace"
        here.mkdir()
        temporary.mkdir()
        command: list[object] = [self.python, ONE_MODULE, module, file, *tests]
        if self.inferscope is not None:
            command = [self.inferscope, "run", "--quiet", "--output", trace, *self.options, "--", *command]
        log = folder / "log"
        with open(log, "wb") as said:
            process = subprocess.Popen(
                command,
                cwd=here,
                env=environment(temporary),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                code = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return read(file, code is None, self.inferscope is not None, log)


def environment(temporary: Path) -> dict[str, str]:
    """Ours, without anything that InferScope or Python reads: a test says what it wants."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("INFERSCOPE", "PYTHON", "CPYTHON"))}
    return kept | {"TMPDIR": str(temporary)}


def read(file: Path, hung: bool, recorded: bool, log: Path) -> Run:
    run = Run()
    begun, whole = "", False
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in map(json.loads, lines):
        if "recorded" in line:
            # A run without us in it would show no difference, ever.
            if line["recorded"] != recorded:
                run.fault = "nothing was recorded" if recorded else "a plain run was recorded"
        elif "missing" in line:
            run.missing = whole = True
        elif "begins" in line:
            begun = line["begins"]
        elif "test" in line:
            begun = ""
            add(run, line["test"], line["outcome"], line["why"])
        else:
            whole = True
    if not whole:
        add(run, begun or "between tests", HUNG if hung else DIED, "")
    if not lines or run.fault:
        run.fault = f"{run.fault or 'no test ran'}: {log.read_text(errors='replace')[-2000:]}"
    return run


def add(run: Run, test: str, outcome: str, why: str) -> None:
    run.outcomes[test] = f"{run.outcomes[test]}, {outcome}" if test in run.outcomes else outcome
    run.reasons[test] = why
