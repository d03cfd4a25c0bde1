"""Whether a test whose outcomes differ between a plain and a recorded run differs because of the recording.

The rule: its whole module is run once more each way. What shows there again, the same way round, is a difference. What
does not is run alone, ROUNDS times each way: it is a difference if plain runs agree with each other and at least half
of the recorded ones disagree with them. Everything else is flaky by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from outcomes import Run, Way

# Five agree by chance in a thirtieth of the cases for a test that fails every other time.
ROUNDS = 5
ABSENT = "did not run"
# Where more of a module differ once and not again, its process was killed: the first of them are looked at.
MOST_ALONE = 10


@dataclass(frozen=True)
class Difference:
    test: str
    plain: str
    recorded: str
    why: str


def between(plain: Run, recorded: Run) -> list[Difference]:
    tests = {**plain.outcomes, **recorded.outcomes}
    return [
        Difference(
            test,
            plain.outcomes.get(test, ABSENT),
            recorded.outcomes.get(test, ABSENT),
            recorded.reasons.get(test) or plain.reasons.get(test, ""),
        )
        for test in tests
        if plain.outcomes.get(test) != recorded.outcomes.get(test)
    ]


def because_of_recording(
    module: str, found: list[Difference], plain: Way, recorded: Way, tell: Callable[[str], None]
) -> list[Difference]:
    """Those of the differences that are no chance."""
    again = {(one.test, one.plain, one.recorded) for one in between(plain.run(module), recorded.run(module))}
    kept = [one for one in found if (one.test, one.plain, one.recorded) in again]
    once = [one for one in found if one not in kept]
    for number, one in enumerate(once):
        if number < MOST_ALONE and alone(module, one.test, plain, recorded):
            kept.append(one)
        else:
            outcomes = f"plain {one.plain}, recorded {one.recorded}"
            tell(f"{module}: flaky by itself: {one.test} ({outcomes}): {one.why[:200]}")
    return kept


def alone(module: str, test: str, plain: Way, recorded: Way) -> bool:
    normal = {plain.run(module, test).outcomes.get(test) for _ in range(ROUNDS)}
    different = 0
    for left in range(ROUNDS, 0, -1):
        # Decided already, whatever the others say.
        if len(normal) != 1 or different * 2 >= ROUNDS or (different + left) * 2 < ROUNDS:
            break
        different += recorded.run(module, test).outcomes.get(test) not in normal
    return len(normal) == 1 and different * 2 >= ROUNDS
