"""How generated programs are judged, shown on rows of a few values each; and that every seed gives a program that
Python can read, the same one each time."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))

import judge
import seeds
import seeds_judge
import seeds_replay
from generate.program import source
from generate.recipe import FAULTS, HEALTHY_EACH, TWO_EACH, recipe
from generate.template import filled, merged

# Faults that no rule names yet: a program with one of them is told something else, or nothing.
UNTOLD = {"lock-holder"}


def finding(code: str, mid: float | None, confidence: float = 0.9, width: float = 10.0) -> dict[str, Any]:
    gain = None if mid is None else {"low": mid - width / 2, "mid": mid, "high": mid + width / 2, "by": "replay"}
    return {"code": code, "gain_percent": gain, "confidence": confidence, "title": code}


def row(*findings: dict[str, Any], faults: int = 1, gains: tuple[float, ...] = (30.0,), **more: Any) -> dict[str, Any]:
    names, codes = ["item", "tokenise"], [["implicit-sync", "sync-api"], ["preprocess-before-first-kernel"]]
    return {
        "seed": 1,
        "family": "mlp",
        "faults": names[:faults],
        "accepted": codes[:faults],
        "marks": "none",
        "company": "alone",
        "true": {"steps": 60, "warm": 4, "inner": 8, "mean_us": 5000.0, "p50_us": 4900.0},
        "steps": {"name": "request", "source": "scope", "count": 60, "mean_us": 5000.0},
        "findings": list(findings),
        "bottleneck": {"confidence": 0.6},
        "measured": {"gains": list(gains[:faults])},
        "recorded_s": 8.0,
        "measured_s": 3.0,
        "busy_percent": 80.0,
        **more,
    }


class Steps(unittest.TestCase):
    def right(self, marks: str = "none", **steps: Any) -> bool:
        chosen = {"name": "x", "source": "nvtx", "count": 60, "mean_us": 5000.0} | steps
        return seeds_judge.steps_right(row(steps=chosen, marks=marks))

    def test_count_or_duration_must_be_near(self) -> None:
        self.assertTrue(self.right(count=66, mean_us=1.0))
        self.assertTrue(self.right(count=7, mean_us=5400.0))
        self.assertFalse(self.right(count=75, mean_us=4000.0))

    def test_a_warm_up_of_the_same_requests_may_be_counted(self) -> None:
        self.assertTrue(self.right(count=70, mean_us=1.0))
        self.assertFalse(self.right(count=71, mean_us=1.0))

    def test_rounds_within_a_request_are_steps_only_where_nothing_is_marked(self) -> None:
        self.assertTrue(self.right(count=480, mean_us=600.0))
        self.assertFalse(self.right("nvtx", count=480, mean_us=600.0))

    def test_a_library_s_range_is_never_right(self) -> None:
        self.assertFalse(self.right(name="cub::DeviceRadixSort"))
        self.assertFalse(self.right(name="ncclAllReduce"))

    def test_no_steps_are_wrong(self) -> None:
        self.assertFalse(self.right(count=0, mean_us=None))


class Verdicts(unittest.TestCase):
    def test_the_first_finding_must_be_one_of_the_fault_s(self) -> None:
        self.assertTrue(seeds_judge.verdict(row(finding("sync-api", 20.0)))["right"])
        self.assertFalse(seeds_judge.verdict(row(finding("launch-bound", 20.0), finding("sync-api", 9.0)))["right"])

    def test_a_fault_that_was_too_small_is_neither_right_nor_wrong(self) -> None:
        small = seeds_judge.verdict(row(finding("launch-bound", 20.0), gains=(9.9,)))
        self.assertIsNone(small["right"])
        self.assertEqual(seeds_judge.figures([row(gains=(9.9,))])["planted_too_small"], [1])
        self.assertFalse(seeds_judge.verdict(row(finding("launch-bound", 20.0), gains=(10.0,)))["right"])

    def test_of_two_faults_the_larger_comes_first_and_equal_ones_in_any_order(self) -> None:
        second = finding("preprocess-before-first-kernel", 20.0)
        self.assertFalse(seeds_judge.verdict(row(second, faults=2, gains=(30.0, 20.0)))["right"])
        self.assertTrue(seeds_judge.verdict(row(second, faults=2, gains=(30.0, 26.0)))["right"])
        self.assertEqual(seeds_judge.verdict(row(second, faults=2, gains=(30.0, 26.0)))["measured"], 26.0)

    def test_a_healthy_program_must_not_be_blamed(self) -> None:
        fine = row(finding("compute-bound", None), faults=0)
        self.assertTrue(seeds_judge.verdict(fine)["right"])
        blamed = row(finding("launch-bound", judge.BLAME), faults=0)
        self.assertEqual(seeds_judge.figures([fine, blamed])["healthy_blamed"], [1])

    def test_without_a_fix_the_fault_is_what_counts(self) -> None:
        self.assertTrue(seeds_judge.verdict(row(finding("sync-api", 20.0), gains=()))["right"])
        failed = row(finding("sync-api", 20.0), measured={"failed": "ended with -9"})
        self.assertIsNone(seeds_judge.verdict(failed)["right"])

    def test_what_failed_is_counted_and_judged_by_nothing_else(self) -> None:
        found = seeds_judge.figures([{"seed": 7, "faults": [], "error": "no module"}])
        self.assertEqual((found["failed"], found["asked"], found["steps_right_percent"]), ([7], 0, None))


class Figures(unittest.TestCase):
    def test_reliability_and_gains_are_of_the_verdicts(self) -> None:
        rows = [
            row(finding("sync-api", 28.0, 0.95)),
            row(finding("launch-bound", 40.0, 0.85)),
            row(finding("implicit-sync", 60.0, 0.5)),
        ]
        found = seeds_judge.figures(rows)
        self.assertEqual(found["first_right_percent"], 66.7)
        self.assertEqual((found["sure"], found["right_of_sure_percent"]), (2, 50.0))
        self.assertEqual(found["reliability"]["0.8 to 1.0"], {"right": 1, "of": 2})
        # Off by 2 and by 30; the first range holds what was measured.
        self.assertEqual(
            found["gains"],
            {"count": 2, "median_error": 16.0, "within_15_percent": 50.0, "inside_percent": 50.0, "median_width": 10.0},
        )
        self.assertEqual(found["gains_by_rule"]["sync-api"]["median_error"], 2.0)
        self.assertEqual(found["gains_by_source"]["by replay"]["count"], 2)
        self.assertEqual(found["gains_by_change"]["change not said"]["count"], 2)

    def test_what_is_said_of_the_machine_can_be_left_out(self) -> None:
        busy = row(finding("launch-thread-descheduled", 50.0), finding("sync-api", 28.0))
        self.assertFalse(seeds_judge.verdict(busy)["right"])
        self.assertTrue(seeds_judge.verdict(seeds_judge.without_machine(busy))["right"])

    def test_the_table_has_every_program_s_line(self) -> None:
        text = "\n".join([*seeds_judge.table([row(finding("sync-api", 28.0))]), seeds_judge.line(row())])
        for word in ("first_right_percent: 100.0", "0.8 to 1.0", "WRONG 1 mlp, item"):
            self.assertIn(word, text)


class Seeds(unittest.TestCase):
    def test_numbers_and_ranges(self) -> None:
        self.assertEqual(seeds.numbers("3,7, 20-22"), [3, 7, 20, 21, 22])

    def test_a_program_that_hangs_is_ended_with_what_it_started(self) -> None:
        words = [sys.executable, "-u", "-c", "print('begun')\nwhile True: pass"]
        with self.assertRaisesRegex(AssertionError, "still running"):
            seeds.ended(words, Path.cwd(), dict(os.environ), 0.5)
        with self.assertRaisesRegex(AssertionError, "ended with 3"):
            seeds.ended([sys.executable, "-c", "raise SystemExit(3)"], Path.cwd(), dict(os.environ), 60)

    def test_reported_seeds_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / "reported_seeds.txt"
            listed.write_text("10003\n10004\n", encoding="utf-8")
            self.assertEqual(seeds.repeated([9, 10004, 10005], listed), [10004])
            self.assertEqual(seeds.repeated([10004], Path(folder) / "none"), [])

    def test_figures_that_are_not_reached_are_said(self) -> None:
        least = ["first_right_percent=90"]
        self.assertFalse(seeds_replay.missed({"first_right_percent": 90.0}, least, []))
        self.assertTrue(seeds_replay.missed({"first_right_percent": 89.9}, least, []))
        self.assertTrue(seeds_replay.missed({"first_right_percent": None}, least, []))
        wrong, right = row(finding("hot-line", 20.0)), row(finding("sync-api", 20.0))
        self.assertFalse(seeds_replay.became_wrong([right], {}))
        self.assertTrue(seeds_replay.became_wrong([wrong], {}))
        self.assertFalse(seeds_replay.became_wrong([wrong], {"1": "why"}))
        self.assertFalse(seeds_replay.missed({"healthy_blamed": []}, [], ["healthy_blamed"]))
        self.assertTrue(seeds_replay.missed({"healthy_blamed": [7]}, [], ["healthy_blamed"]))

    def test_what_a_fault_is_told_by_is_a_rule(self) -> None:
        pages = (Path(__file__).resolve().parents[2] / "docs" / "rules").glob("*.md")
        rules = {
            line[3:] for page in pages for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == "## "
        }
        wanted = {code for fault in FAULTS for code in fault.accepted}
        self.assertEqual(wanted - rules, UNTOLD)

    def test_consecutive_seeds_have_every_fault_and_some_have_none(self) -> None:
        cycle = len(FAULTS) + HEALTHY_EACH + TWO_EACH
        made = [recipe(seed) for seed in range(cycle)]
        names = {one.faults[0].name for one in made if len(one.faults) == 1}
        self.assertEqual(names, {fault.name for fault in FAULTS})
        self.assertGreaterEqual(len(FAULTS), 25)
        self.assertEqual(sum(not one.faults for one in made), HEALTHY_EACH)
        self.assertEqual(len({one.family.name for one in made}), 10)

    def test_every_program_can_be_read_and_is_the_same_each_time(self) -> None:
        for device, small in (("cuda", False), ("cpu", True)):
            for seed in range(150):
                text = source(recipe(seed, device, small))
                compile(text, f"seed_{seed}.py", "exec")
                self.assertNotIn("#[", text)
                self.assertEqual(text, source(recipe(seed, device, small)))

    def test_a_planted_program_asks_for_its_fix(self) -> None:
        for seed in range(150):
            made = recipe(seed)
            for fault, switch in zip(made.faults, ("options.fixed", "options.also_fixed"), strict=False):
                if fault.slots:
                    self.assertIn(switch, source(made).split("def serve")[0], f"{seed}: {fault.name}")

    def test_slots_keep_their_place(self) -> None:
        slots = merged({"a": "one()"}, {"a": "two()\n#[b]"}, {"b": "three()"})
        self.assertEqual(
            filled("if x:\n    #[a]\n    y(<<c:0>>)", slots), "if x:\n    one()\n    two()\n    three()\n    y(0)"
        )


if __name__ == "__main__":
    unittest.main()
