"""Programs whose memory is known: each is a program, two dozen seeds have every fault, and verdicts are right."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))

import memory_judge
from generate.memory_device import DEVICE
from generate.memory_faults import LEAKS
from generate.memory_healthy import SOUND
from generate.memory_recipe import memory_recipe, memory_row, memory_source
from memory_seeds import REPORTED
from seeds import repeated


def row(said: str | None, *accepted: str, confidence: float = 0.9) -> dict:
    findings = [{"code": said, "confidence": confidence, "title": said}] if said else []
    return {"seed": 1, "accepted": list(accepted), "healthy": "healthy" in accepted, "findings": findings}


class Programs(unittest.TestCase):
    def test_every_seed_is_a_program_and_the_same_one_again(self) -> None:
        for device in ("cpu", "cuda"):
            for seed in range(60):
                source = memory_source(memory_recipe(seed, device))
                compile(source, f"seed_{seed}.py", "exec")
                self.assertEqual(source, memory_source(memory_recipe(seed, device)))
                self.assertNotIn("FIX", source)
                self.assertNotIn("#[", source)

    def test_a_fault_has_a_fix_and_two_dozen_seeds_have_each(self) -> None:
        seen = {device: set() for device in ("cpu", "cuda")}
        for device, names in seen.items():
            for made in (memory_recipe(seed, device) for seed in range(24)):
                (planted,) = made.faults
                names.add(planted.name)
                self.assertEqual("options.fixed" in memory_source(made), planted in (*LEAKS, *DEVICE))
                self.assertEqual(memory_row(made)["healthy"], planted in SOUND)
        every = {one.name: one.gpu_only for one in (*LEAKS, *DEVICE, *SOUND)}
        self.assertEqual(seen, {"cpu": {name for name, gpu in every.items() if not gpu}, "cuda": set(every)})


class Verdicts(unittest.TestCase):
    def test_only_memory_is_judged_and_advice_is_no_blame(self) -> None:
        found = [{"code": code, "confidence": 0.9, "title": code} for code in ("hot-line", "memory-underused", "leak")]
        told = memory_judge.told({"findings": found, "abstentions": [], "steps": None})
        self.assertEqual([one["code"] for one in told["findings"]], ["leak"])

    def test_what_is_said_first_counts(self) -> None:
        rows = [row("leak", "leak"), row("fragmentation", "leak", confidence=0.3), row(None, "healthy")]
        rows += [row("leak", "healthy"), row(None, "leak"), {"seed": 7, "healthy": False, "error": "hung"}]
        found = memory_judge.totals(rows)
        self.assertEqual((found["judged"], found["right"], found["failed"]), (5, 2, [7]))
        self.assertEqual((found["healthy"], found["healthy_blamed"]), (2, [1]))
        self.assertEqual((found["sure"], found["right_of_sure"]), (2, 1))
        self.assertEqual(len(memory_judge.missed(found)), 3)
        self.assertEqual(memory_judge.missed(memory_judge.totals([row("leak", "leak"), row(None, "healthy")])), [])

    def test_nothing_judged_is_not_reached(self) -> None:
        self.assertTrue(memory_judge.missed(memory_judge.totals([])))

    def test_what_was_reported_is_not_fresh_again(self) -> None:
        known = [int(line) for line in REPORTED.read_text("utf-8").split()]
        self.assertEqual(repeated([*known, 5], REPORTED), sorted(known))
        self.assertTrue(all(seed >= 10_000 for seed in known))


if __name__ == "__main__":
    unittest.main()
