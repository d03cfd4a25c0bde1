"""`inferscope verify` on a real GPU: each fix of PyTorch is there, its gain is predicted and measured, and the results
are the same, or as near as the fix says."""

from __future__ import annotations

import json

from case import Case, Done, equal

# What may change at most, as a part of the result. Copies carry the same bytes, whatever way they go.
NEAR = {"tf32": 1e-2, "sdpa": 1e-2, "channels-last": 1e-2, "cudnn-benchmark": 1e-2, "pinned-copies": 0.0}


def fixes(case: Case) -> None:
    for fix in NEAR:
        kept = case.folder / f"verify-{fix}"
        rounds = "2" if case.dry else "3"
        words = ["verify", "--quiet", "--format", "json", "--rounds", rounds, "--output", str(kept), "--fix", fix]
        done = case.run([str(case.command), *words, "--", *case.python("fixes.py", fix, 8 if case.dry else 40)])
        case.check(f"the fix {fix}", lambda fix=fix, kept=kept, done=done: judge(case, fix, kept, done))


def judge(case: Case, fix: str, kept, done: Done) -> None:
    if case.dry and fix == "pinned-copies":
        assert "no tensor in pageable memory was copied to the GPU" in done.err, done.err[-500:]
        return
    equal(done.code, 0, f"exit ({done.err[-500:]})")
    told = json.loads(done.out)
    case.results.say(f"     {told['applied']}")
    case.results.say(f"     {told['answer']}")
    case.results.figure(f"verify_{fix}_measured", told["measured"])
    case.results.figure(f"verify_{fix}_predicted", told["predicted"] or told["not_predicted"])
    equal(told["of"], "step", "what is measured")
    with_fix, without = (results(kept, which) for which in ("with", "without"))
    for found, expected in zip(with_fix, without, strict=True):
        off = abs(found - expected) / max(abs(expected), 1e-9)
        assert off <= NEAR[fix], f"a result is {found} with the fix and {expected} without"
    if fix == "pinned-copies":
        equal(with_fix, [number + 0.5 for number in range(len(with_fix))], "what arrived")


def results(kept, which: str) -> list[float]:
    line = (kept / f"round-001-{which}.out").read_text().strip().splitlines()[-1]
    return json.loads(line)["results"]
