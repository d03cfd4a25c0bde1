"""What must be said of the real programs of tests/frameworks/programs: their steps, with and without marks, that
start-up lies before them, and what may come first. Asked of fresh recordings (tests/frameworks) and of those that the
repository keeps (`programs_replay.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import judge
import seeds_judge

HOWS = ("plain", "marked")
# Steps that are warm-up, or in which operators were recorded, are in no figure. A recording of a few seconds has two
# or three looks of two turns each; on a busy machine the first steps are slow for long.
MOST_APART = 18


@dataclass(frozen=True)
class Steps:
    # `source` and `name` of the analysis.
    source: str
    name: str
    # How many there are at most: as often as the program goes around its loop.
    count: int


@dataclass(frozen=True)
class RealProgram:
    plain: Steps
    marked: Steps
    # What is right as the first finding about the program. Nothing: it is healthy, and no gain may be promised.
    first: tuple[str, ...]
    # The function that this finding names, where it is about one.
    function: str = ""
    # Steps that are as right where nothing is marked.
    also: Steps | None = None


def requests(count: int) -> Steps:
    return Steps("step", "request", count)


def turns(entry: str, count: int) -> Steps:
    """From one call to the next: one less than there are calls."""
    return Steps("loop", f"iteration ({entry})", count - 1)


PROGRAMS = {
    # Python's loop over the vocabulary, in a function that `generate` calls back.
    "generate_requests": RealProgram(
        Steps("entry", "generate LlamaForCausalLM", 40), requests(40), ("hot-line",), "NoBannedTokens.__call__"
    ),
    # What the program marks only waits: the model runs in a thread of transformers, and its rounds are the steps.
    # How many there are depends on which prompts come in time for the first round of a batch. Nothing is planted.
    "continuous_batching": RealProgram(
        turns("model LlamaForCausalLM", 400), turns("model LlamaForCausalLM", 400), first=()
    ),
    "image_batches": RealProgram(turns("model ResNet", 40), requests(40), ("single-threaded-loader",)),
    "sentence_encoding": RealProgram(turns("model BertModel", 40), requests(40), ("hot-line",), "cleaned"),
    # All of a turn is the call, which compiles: either is the step.
    "jax_shapes": RealProgram(
        turns("jax encode", 14), requests(14), ("compile-in-request",), also=Steps("entry", "jax encode", 14)
    ),
    "keras_requests": RealProgram(turns("keras Sequential", 40), requests(40), ("hot-line",), "hashed"),
    "onnx_requests": RealProgram(turns("onnx InferenceSession", 40), requests(40), ("hot-line",), "normalised"),
    "sklearn_requests": RealProgram(turns("predict RandomForestClassifier", 60), requests(60), ("logging-in-step",)),
    # Both name the call that blocks: by what the step waits for, and by what that does to all others.
    "asgi_requests": RealProgram(
        Steps("entry", "request GET", 30), requests(30), ("waits-in-step", "event-loop-blocked"), "features"
    ),
    "wsgi_requests": RealProgram(Steps("entry", "request GET", 40), requests(40), ("hot-line",), "load"),
}


def wrong(program: RealProgram, how: str, analysis: dict[str, Any]) -> list[str]:
    """What is not as it must be, in words; nothing where all is."""
    steps = analysis.get("steps") or {}
    wanted = program.marked if how == "marked" else program.plain
    if how == "plain" and program.also and steps.get("source") == program.also.source:
        wanted = program.also
    found: list[str] = []
    if (steps.get("source"), steps.get("name")) != (wanted.source, wanted.name):
        found.append(f"steps are {steps.get('name')!r} from {steps.get('source')}, not {wanted}")
    if not wanted.count - max(MOST_APART, wanted.count // 2) <= steps.get("count", 0) <= wanted.count:
        found.append(f"{steps.get('count')} steps, not {wanted.count} without what is set apart")
    if seeds_judge.library_steps({"steps": steps}):
        found.append("the steps are a library's ranges")
    startup = steps.get("startup") or {}
    if not 0 < startup.get("imports_us", 0) <= startup.get("duration_us", 0) <= steps.get("window_start_us", 0):
        found.append(f"start-up is not apart: {startup}, steps from {steps.get('window_start_us')} µs on")
    return found + wrong_first(program, analysis)


def wrong_first(program: RealProgram, analysis: dict[str, Any]) -> list[str]:
    """Who else uses the machine is said first where that is so, and right: here it is asked what comes after that."""
    about = [one for one in analysis["findings"] if one["code"] not in seeds_judge.MACHINE]
    if not program.first:
        blamed = judge.blamed({"findings": about})
        return [f"healthy, and blamed: {blamed['title']}"] if blamed else []
    first = judge.first({"findings": about})
    said = first["title"] if first else "nothing"
    if first is None or first["code"] not in program.first:
        return [f"first: {said}; right would be {' or '.join(program.first)}"]
    function = (first.get("where") or {}).get("function") or ""
    return [f"{said}: not {program.function}"] if program.function not in function else []
