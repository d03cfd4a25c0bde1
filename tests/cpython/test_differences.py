"""The comparison itself: what it calls a difference, what it calls flaky, and that it can fail."""

from __future__ import annotations

import json
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

from differences import ROUNDS, Difference, because_of_recording, between
from expected import Expected, read
from outcomes import DIED, HUNG, Run
from outcomes import read as read_outcomes


class Script:
    """A way to run a module whose outcomes are written down: those of the test alone, and those of its module."""

    def __init__(self, alone: str, module: str = "") -> None:
        self._alone: Iterator[str] = iter(alone.split())
        self._module: Iterator[str] = iter(module.split())

    def run(self, module: str, *tests: str) -> Run:
        return Run({"t": next(self._alone if tests else self._module)})


def judged(plain: Script, recorded: Script) -> int:
    found = [Difference("t", "passed", "failed", "")]
    return len(because_of_recording("module", found, plain, recorded, lambda _: None))


class Judging(unittest.TestCase):
    def test_one_that_shows_again_in_its_module_is_a_difference(self):
        self.assertEqual(judged(Script("", "passed"), Script("", "failed")), 1)

    def test_one_that_often_fails_alone_when_recorded_is_a_difference(self):
        plain = Script("passed " * ROUNDS, "passed")
        self.assertEqual(judged(plain, Script("passed failed passed failed failed", "passed")), 1)

    def test_one_that_fails_by_itself_is_none(self):
        plain = Script("passed failed passed passed passed", "passed")
        self.assertEqual(judged(plain, Script("failed " * ROUNDS, "passed")), 0)

    def test_one_that_fails_the_other_way_round_is_none(self):
        self.assertEqual(judged(Script("passed " * ROUNDS, "failed"), Script("passed " * ROUNDS, "passed")), 0)

    def test_one_that_failed_once_is_none(self):
        self.assertEqual(judged(Script("passed " * ROUNDS, "passed"), Script("passed " * ROUNDS, "passed")), 0)

    def test_what_did_not_run_is_different(self):
        found = between(Run({"a": "passed", "b": "skipped"}), Run({"a": "passed"}))
        self.assertEqual([(one.test, one.recorded) for one in found], [("b", "did not run")])


class Reading(unittest.TestCase):
    def lines(self, *lines: object, hung: bool = False, recorded: bool = True) -> Run:
        with tempfile.TemporaryDirectory() as folder:
            file, log = Path(folder, "outcomes"), Path(folder, "log")
            log.touch()
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            return read_outcomes(file, hung, recorded, log)

    def test_the_test_in_which_the_process_died_or_hung_is_named(self):
        begun = ({"recorded": True}, {"begins": "t"})
        self.assertEqual(self.lines(*begun).outcomes, {"t": DIED})
        self.assertEqual(self.lines(*begun, hung=True).outcomes, {"t": HUNG})

    def test_a_run_that_was_not_recorded_proves_nothing(self):
        end = {"whole": 0}
        self.assertIn("nothing was recorded", self.lines({"recorded": False}, end).fault)
        self.assertIn("plain run was recorded", self.lines({"recorded": True}, end, recorded=False).fault)
        self.assertIn("no test ran", self.lines().fault)
        self.assertEqual(self.lines({"recorded": True}, end).fault, "")


class Listing(unittest.TestCase):
    def test_every_line_has_a_reason_that_the_documentation_gives(self):
        page = (Path(__file__).resolve().parents[2] / "docs" / "internals" / "invisible.md").read_text(encoding="utf-8")
        for entry in read():
            self.assertIn(entry.reason.replace("`", ""), page.replace("`", ""))

    def test_a_star_covers_what_begins_so(self):
        entry = Expected(("3.12",), "test.test_x.*", "why")
        self.assertTrue(entry.covers("test.test_x.One.test_it"))
        self.assertFalse(entry.covers("test.test_y.One.test_it"))


if __name__ == "__main__":
    unittest.main()
