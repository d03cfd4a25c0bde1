"""How ranges of gains are made of measured fixes, shown on a few of them."""

from __future__ import annotations

import unittest

from ranges import FEWEST_INSIDE, MOST_INSIDE, Fix, Misses, differing, inside_percent, left_out, read, table


def fix(change: str, promised: float, measured: float, program: str = "p") -> Fix:
    return Fix(change, (promised, promised, promised), measured, program)


class Ranges(unittest.TestCase):
    def test_a_kind_that_misses_less_has_narrower_ranges(self) -> None:
        misses = Misses([fix("copies", 50, 51)] * 8 + [fix("launches", 50, 70)] * 8)

        def width(change: str) -> float:
            low, high = misses.range_of(change, (50, 50, 50), bounds=False)
            return high - low

        self.assertLess(width("copies"), width("unheard-of"))
        self.assertLess(width("unheard-of"), width("launches"))

    def test_a_program_is_never_held_to_itself(self) -> None:
        rows = left_out([fix("copies", 50, 51 + at, str(at)) for at in range(9)] + [fix("copies", 50, 95, "odd")])
        self.assertFalse(rows[-1].inside())
        self.assertLess(rows[-1].high, 70)

    def test_the_table_is_held_by_what_it_leaves_out(self) -> None:
        rows = left_out(read())
        self.assertTrue(FEWEST_INSIDE <= inside_percent(rows) <= MOST_INSIDE)
        self.assertEqual(len(table(rows)), 2 + len({row.fix.change for row in rows}))

    def test_a_report_with_wider_ranges_than_these_is_named(self) -> None:
        misses = Misses(read())
        low, high = misses.range_of("calls", (40, 50, 60), bounds=False)
        gain = {"low": low, "mid": 50, "high": high, "by": "replay", "change": "calls", "derived": [40, 50, 60]}

        def lines(**other: float) -> list[str]:
            return differing({"findings": [{"code": "sync-api", "gain_percent": gain | other}]}, misses)

        self.assertEqual(lines(), [])
        self.assertEqual(len(lines(high=high + 1)), 1)
        self.assertEqual(misses.range_of("calls", (0, 50, 60), bounds=True)[0], 0)
        self.assertEqual(differing({"findings": [{"code": "hot-line", "gain_percent": None}]}, misses), [])


if __name__ == "__main__":
    unittest.main()
