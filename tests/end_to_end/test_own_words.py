"""A program that happens to use our words in its own names: its marks, scopes and steps are recorded like any other,
and mean nothing to us."""

from __future__ import annotations

import json

from recording import FIX, MARK, RECORDING_WINDOW, SCOPE, STEP, Recorded, Trace, inferscope

# What 0.1.0 wrote as marks, losses and notes, and what this version writes as codes.
WORDS = [
    "GPU recording on",
    "GPU recording off",
    "on",
    "off",
    "recording-window",
    "inferscope.fix",
    "fix",
    "stacks that could not be read because they changed meanwhile",
    "stack-changed",
    "no stacks: no Python process was seen",
    "no scopes and calls of process 7: it was started with -I",
    "not-injected",
    "the command buffer is full",
    "Healthy: nothing is wrong",
    '{"ordinal":0,"name":"NVIDIA H200"}',
    "step (prefill)",
    "execute (decode)",
    "torch.profiler",
]


def program(words: list[str]) -> str:
    """Ten steps, and in each of them the words as marks and scopes."""
    return f"""
        import time
        from inferscope import mark_event, scope, step
        words = {words!r}
        def work():
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until: pass
        for number in range(10):
            with step("request"):
                for word in words:
                    mark_event(word, metadata={{"what": word, "state": "applied"}})
                    with scope(word, tags={{"code": word}}): pass
                work()
    """


def test_names_like_our_own_words_mean_nothing(script, record):
    ours = record(script(program(WORDS)))
    other = ours.trace.folder.with_name("plain")
    done = inferscope("run", "--output", other, "--", script(program(["a", "b"])))
    plain = Recorded(done.returncode, done.stdout, done.stderr, Trace(other))
    assert (ours.code, plain.code) == (0, 0), ours.told + plain.told
    trace = ours.trace
    assert trace.texts(MARK) == WORDS * 10
    assert sorted(trace.texts(SCOPE)) == sorted(WORDS * 10)
    assert len(trace.texts(STEP)) == 10
    assert trace.texts(RECORDING_WINDOW) == []
    assert trace.texts(FIX) == []
    assert trace.lost() == 0
    noted, usual = ([note["code"] for note in one.trace.manifest["notes"]] for one in (ours, plain))
    assert noted == usual
    told, usual = (
        json.loads(inferscope("analyze", str(one.trace.folder), "--format", "json").stdout) for one in (ours, plain)
    )
    # A slow first step may be warm-up in one of the two.
    counted = [one["steps"]["count"] + one["steps"]["warmup"] for one in (told, usual)]
    assert counted[0] == counted[1] > 0, "no step lies outside of a window that there is not"
    assert told["steps"]["source"] == usual["steps"]["source"]
    assert told["health"]["note_codes"] == usual["health"]["note_codes"]
    assert [line["label"] for line in told["health"]["lines"]] == [line["label"] for line in usual["health"]["lines"]]


def engine_like(names: tuple[str, str]) -> str:
    """Twelve short steps and two long ones between them, as a serving engine's prefill would stop its decoding."""
    return f"""
        import time
        from inferscope import step
        def work(seconds):
            until = time.perf_counter() + seconds
            while time.perf_counter() < until: pass
        for number in range(14):
            slow = number in (5, 9)
            with step({names!r}[slow], tags={{"marker": "step[DECODE bs=1]"}}): work(0.3 if slow else 0.02)
    """


def test_steps_named_like_those_of_an_engine_are_no_engine(script, record):
    """What a serving engine does in a step is known from its own markers (torch.profiler, NVTX), never from a name."""
    recorded = record(script(engine_like(("execute (decode)", "execute (prefill)"))))
    assert recorded.code == 0, recorded.told
    told = json.loads(inferscope("analyze", str(recorded.trace.folder), "--format", "json").stdout)
    codes = [finding["code"] for finding in told["findings"]]
    assert not {"prefill-blocks-decode", "scheduler-gap"} & set(codes), codes
    exported = inferscope("export", str(recorded.trace.folder), "--format", "json", "--output", "-").stdout
    phases = {event["metadata"]["phase"] for event in json.loads(exported)["events"] if event["type"] == "scope_enter"}
    assert phases == {"none"}
