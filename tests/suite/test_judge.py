"""What counts as a right verdict, shown on analyses of a few lines each."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from typing import Any

import judge
from catalogue import HEALTHY, Program, programs


def finding(code: str, mid: float | None, confidence: float = 0.9) -> dict[str, Any]:
    gain = None if mid is None else {"low": mid - 1, "mid": mid, "high": mid + 1}
    return {"code": code, "gain_percent": gain, "confidence": confidence, "title": code}


def analysis(*findings: dict[str, Any], idle: tuple[float, ...] = ()) -> dict[str, Any]:
    rows = [
        {"category": category, "percentage": share} for category, share in zip(("busy", "unknown"), idle, strict=False)
    ]
    return {"findings": list(findings), "bottleneck": {"confidence": 0.7}, "idle_breakdown": rows}


SYNC = Program("item", "implicit-sync", ("sync-api",), "launch-bound")
FINE = Program("fine", HEALTHY)


class Judging(unittest.TestCase):
    def test_the_first_finding_with_a_gain_is_the_verdict(self) -> None:
        verdict = judge.judge(SYNC, analysis(finding("dropped-records", None), finding("implicit-sync", 30.0)))
        self.assertTrue(verdict.right)
        self.assertFalse(verdict.second)
        other = judge.judge(SYNC, analysis(finding("launch-bound", 40.0), finding("implicit-sync", 30.0)))
        self.assertEqual((other.said, other.right, other.second), ("launch-bound", False, True))

    def test_what_says_the_same_is_right_too(self) -> None:
        self.assertTrue(judge.judge(SYNC, analysis(finding("sync-api", 30.0))).right)

    def test_judge_and_answer_blame_from_the_same_gain_on(self) -> None:
        answer = Path(__file__).resolve().parents[2] / "crates" / "diagnosis" / "src" / "leading.rs"
        least = re.search(r"pub const MIN_GAIN: f64 = ([0-9.]+);", answer.read_text(encoding="utf-8"))
        assert least is not None
        self.assertEqual(judge.BLAME, float(least[1]))
        bound = Program("gemm", "compute-bound")
        for gain, right in ((judge.BLAME - 0.1, True), (judge.BLAME, False)):
            said = judge.judge(bound, analysis(finding("short-kernel-gaps", gain), finding("compute-bound", None)))
            self.assertEqual(said.right, right, gain)

    def test_a_statement_counts_only_where_nothing_is_blamed(self) -> None:
        bound = Program("gemm", "compute-bound")
        little = finding("short-kernel-gaps", 2.0)
        self.assertTrue(judge.judge(bound, analysis(little, finding("compute-bound", None))).right)
        much = finding("short-kernel-gaps", 20.0)
        self.assertFalse(judge.judge(bound, analysis(much, finding("compute-bound", None))).right)

    def test_a_place_that_stands_before_all_promises_is_the_verdict(self) -> None:
        hot = Program("hot", "hot-line")
        said = analysis(finding("hot-line", None), finding("host-wait", 11.0))
        self.assertTrue(judge.judge(hot, said).right)
        # And what is promised after it is blame all the same.
        self.assertFalse(judge.judge(FINE, said).right)

    def test_a_healthy_program_may_be_described_but_not_blamed(self) -> None:
        self.assertTrue(judge.judge(FINE, analysis(finding("kernel-hotspot", None))).right)
        blamed = judge.judge(FINE, analysis(finding("host-wait", 12.0)))
        self.assertFalse(blamed.right)
        self.assertEqual(judge.figures([blamed], {})["healthy_blamed"], ["fine"])

    def test_silence_about_something_planted_is_wrong(self) -> None:
        verdict = judge.judge(SYNC, analysis())
        self.assertEqual((verdict.said, verdict.right), (HEALTHY, False))

    def test_gains_are_compared_where_the_verdict_is_right(self) -> None:
        right = judge.judge(SYNC, analysis(finding("implicit-sync", 30.0)))
        self.assertEqual(judge.error(right, {"gain_percent": 24.0}), 6.0)
        self.assertIsNone(judge.error(right, {"gain_percent": None}))
        wrong = judge.judge(SYNC, analysis(finding("host-wait", 30.0)))
        self.assertIsNone(judge.error(wrong, {"gain_percent": 24.0}))

    def test_what_is_not_reached_is_named(self) -> None:
        far = judge.judge(
            SYNC, analysis(finding("implicit-sync", 60.0), finding("launch-bound", 9.0), idle=(80.0, 19.0))
        )
        lines = judge.missed(judge.figures([far], {"item": {"gain_percent": 24.0}}))
        said = "; ".join(lines)
        for word in ("gain_median_error is 36.0", "gain_within_15_percent is 0.0", "unknown_idle", "sums to 99.0"):
            self.assertIn(word, said)
        self.assertNotIn("right_percent is", said)

    def test_what_there_was_nothing_to_measure_of_is_named(self) -> None:
        nothing = judge.figures([judge.judge(SYNC, analysis(finding("implicit-sync", 30.0)))], {})
        self.assertEqual(judge.missed(nothing), ["the second bottleneck of item was not found"])
        self.assertIn("gain_median_error was not measured", judge.unmeasured(nothing))
        self.assertNotIn("right_percent was not measured", judge.unmeasured(nothing))

    def test_every_program_says_what_it_plants(self) -> None:
        every = programs()
        self.assertGreaterEqual(len(every), 26)
        self.assertGreaterEqual(sum(program.expect == HEALTHY for program in every), 3)
        self.assertGreaterEqual(sum(program.second is not None for program in every), 2)


if __name__ == "__main__":
    unittest.main()
