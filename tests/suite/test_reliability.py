"""How confidence is held to what came true, shown on a few verdicts."""

from __future__ import annotations

import unittest

try:
    import reliability
except ModuleNotFoundError as missing:  # pyarrow, for cutting traces
    raise unittest.SkipTest(str(missing)) from None
from reliability import Said


def said(confidence: float, right: int, wrong: int, first: int = 0) -> list[Said]:
    return [Said(f"p{first + at}", reliability.WHOLE, confidence, at < right) for at in range(right + wrong)]


class Reliability(unittest.TestCase):
    def test_verdicts_fall_into_the_band_of_their_confidence(self) -> None:
        self.assertEqual([reliability.band(at) for at in (0.0, 0.19, 0.2, 0.79, 0.8, 1.0)], [0, 0, 1, 3, 4, 4])
        self.assertEqual(reliability.table(said(0.9, 3, 1))[-1], "| 0.8 to 1.0 | 4 | 0.90 | 3 (75 %) |")

    def test_what_is_sure_and_wrong_more_often_than_it_says_is_named(self) -> None:
        self.assertIsNone(reliability.overconfident(said(0.9, 27, 3)))
        self.assertIsNone(reliability.overconfident(said(0.5, 0, 9)))
        self.assertIn("60 %", reliability.overconfident(said(0.9, 18, 12)) or "")

    def test_a_correction_lowers_what_was_said_too_surely_and_leaves_what_holds(self) -> None:
        shift, slope = reliability.fitted(said(0.95, 30, 30))
        self.assertLess(reliability.corrected(0.95, shift, slope), 0.7)
        plain, with_correction = reliability.left_out(said(0.95, 20, 20))
        self.assertLess(with_correction, plain)
        holds = reliability.fitted(said(0.9, 36, 4) + said(0.5, 10, 10, first=40))
        self.assertLess(abs(reliability.corrected(0.9, *holds) - 0.9), 0.05)


if __name__ == "__main__":
    unittest.main()
