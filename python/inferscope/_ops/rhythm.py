"""Which name a look follows: a program's loop may call several models, or one of them many times in each turn. The one
that comes rarest, and still comes, begins the loop's turn; what comes more often is a part of it."""

from __future__ import annotations

# The first turns load, compile and try out: they are unlike the later ones.
_WARM_UP = 3
# A name that has not come for so many begins belongs to another part of the program.
_LONGEST_TURN = 100
# Names beyond this many are not told apart: somebody puts numbers into them.
_MOST_NAMES = 256


class Rhythm:
    def __init__(self) -> None:
        # By thread, whether it is a step, and name: how often it has come, and at which begin of its thread last.
        self._names: dict[tuple[int, bool, str], tuple[int, int]] = {}
        self._begins: dict[tuple[int, bool], int] = {}

    def is_turn(self, thread: int, is_step: bool, name: str) -> bool:
        """Counts a begin, and says whether a turn of the loop begins with it that is like those to come."""
        if len(self._names) >= _MOST_NAMES:
            self._names, self._begins = {}, {}
        where, key = (thread, is_step), (thread, is_step, name)
        now = self._begins[where] = self._begins.get(where, 0) + 1
        count = self._names.get(key, (0, 0))[0] + 1
        self._names[key] = (count, now)
        if count <= _WARM_UP:
            return False
        rarer = (
            last
            for (other_thread, other_is_step, _), (often, last) in self._names.items()
            if often < count and (other_thread, other_is_step) == where
        )
        return all(now - last > _LONGEST_TURN for last in rarer)
