"""The quickstart page as a reader follows it, on the CPU: its program is recorded, the planted bottleneck is the first
finding, the fix on the page is applied, and the work that it saves is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "docs"), str(HERE.parent / "end_to_end")]

from pages import QUICKSTART, blocks, commands, matches_but_for_figures, run  # noqa: E402
from recording import CALL, Trace  # noqa: E402

PROGRAM = "generate.py"
BOTTLENECK = "causal_mask"
# 150 requests of 8 tokens.
TOKENS = 1200
# How busy the machine is, is said too, and is no property of the program.
OF_THE_MACHINE = {"launch-thread-descheduled", "cpu-oversubscribed"}


def apply(change: str, program: Path) -> None:
    """The page's diff: its lines with ` ` and `-` are in the program, once, and become those with ` ` and `+`."""
    lines = change.splitlines()
    before = "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
    after = "\n".join(line[1:] for line in lines if line[:1] in (" ", "+"))
    text = program.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"the page's fix does not fit its program:\n{change}"
    program.write_text(text.replace(before, after), encoding="utf-8")


def ask(command: str, folder: Path) -> dict:
    done = run(f"{command} --format json 2>/dev/null", folder)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    return json.loads(done.stdout)


def calls_of_the_bottleneck(trace: Path) -> int:
    return [name.rpartition(".")[2] for name in Trace(trace).texts(CALL)].count(BOTTLENECK)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of somebody who has followed the page, with the calls of the unfixed program counted besides."""
    folder = tmp_path_factory.mktemp("quickstart")
    for kind, block in blocks(QUICKSTART):
        if kind == "python":
            assert block.startswith(f"# {PROGRAM}\n")
            (folder / PROGRAM).write_text(block, encoding="utf-8")
        elif kind == "diff":
            done = run(f"inferscope run --quiet --calls --include __main__ --output counted-before {PROGRAM}", folder)
            assert done.returncode == 0, done.stdout
            apply(block, folder / PROGRAM)
        else:
            for command, expected in commands(block):
                done = run(command, folder)
                assert done.returncode == 0, f"$ {command}\n{done.stdout}"
                printed = done.stdout.splitlines()
                if expected and not matches_but_for_figures(expected, printed):
                    shown = "\n".join(expected)
                    pytest.fail(f"$ {command}\n--- the page shows\n{shown}\n--- it printed\n{done.stdout}")
    return folder


def test_the_first_finding_is_the_planted_bottleneck(followed: Path) -> None:
    findings = ask("inferscope analyze before", followed)["findings"]
    first = next(finding for finding in findings if finding["code"] not in OF_THE_MACHINE)
    assert first["code"] == "hot-line"
    assert BOTTLENECK in first["title"]
    assert first["gain_percent"]["low"] > 30


def test_the_fix_saves_the_work(followed: Path) -> None:
    assert calls_of_the_bottleneck(followed / "counted-before") == TOKENS
    assert calls_of_the_bottleneck(followed / "counted") == 1


def test_the_comparison_shows_it(followed: Path) -> None:
    """By the whole step: on a machine with more to do than cores, time by function is too rough to hold a test to."""
    metrics = ask("inferscope diff before after", followed)["metrics"]
    step = next(metric for metric in metrics if metric["name"] == "total_time")
    assert step["change_percent"] < 0
    assert step["noise"] == "real"


def test_the_program_computes_the_same_before_and_after(followed: Path) -> None:
    program = next(block for kind, block in blocks(QUICKSTART) if kind == "python")
    (followed / "unfixed.py").write_text(program, encoding="utf-8")
    unfixed, fixed = (run([sys.executable, script], followed).stdout for script in ("unfixed.py", PROGRAM))
    assert fixed == unfixed
    assert fixed.startswith("checksum ")
