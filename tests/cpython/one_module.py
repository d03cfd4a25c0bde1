"""Runs one module of CPython's own tests in the Python that runs this, and writes a line for each test as it begins and
as it ends: of a process that dies or hangs it is known in which test. The same for a plain run and a recorded one.

usage: one_module.py MODULE FILE [TEST ID]..."""

import json
import os
import sys
import unittest

# A part of multiprocessing's tests in one way to start a process: all of them take many minutes. Most modules of them
# are not installed with some Pythons (3.12.1), their common part always is.
MULTIPROCESSING = (
    "WithProcessesTestProcess",
    "WithProcessesTestSubclassingProcess",
    "WithProcessesTestQueue",
    "WithProcessesTestLock",
    "WithProcessesTestEvent",
    "WithProcessesTestValue",
    "WithProcessesTestConnection",
    "WithProcessesTestPicklingConnections",
    "WithProcessesTestHeap",
    "WithThreadsTestProcess",
    "WithManagerTestQueue",
    "_TestImportStar",
    "TestInvalidHandle",
    "TestInitializers",
    "TestFlags",
    "TestIgnoreEINTR",
    "TestStdinBadfiledescriptor",
    "TestNoForkBomb",
    "TestResourceTracker",
    "TestSimpleQueue",
    "TestNamedResource",
)


class Outcomes(unittest.TestResult):
    """What became of each test: of a test with parts, the worst of them."""

    ORDER = ("passed", "skipped", "expected failure", "unexpected success", "failed", "error")

    def __init__(self, file, wanted):
        super().__init__()
        # Neither a test that replaces `open` nor one that looks at the open files meets this one.
        self._write = lambda line, path=file, open=os.open, write=os.write, close=os.close: append(
            path, line, open, write, close
        )
        self._worst = None

    def startTest(self, test):
        super().startTest(test)
        self._worst = None
        self._write({"begins": test.id()})

    def stopTest(self, test):
        super().stopTest(test)
        outcome, why = self._worst or ("passed", "")
        self._write({"test": test.id(), "outcome": outcome, "why": why})

    def _note(self, test, outcome, why=""):
        if self._worst is None or self.ORDER.index(outcome) > self.ORDER.index(self._worst[0]):
            self._worst = (outcome, why)
        # The fault of a class or of a module has no test around it.
        if not isinstance(test, unittest.TestCase) and not hasattr(test, "_subDescription"):
            self._write({"test": test.id(), "outcome": outcome, "why": why})

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note(test, "passed")

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "error", last_line(err))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failed", last_line(err))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", str(reason))

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._note(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._note(test, "unexpected success")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self._note(subtest, "failed" if failed else "error", f"{subtest._subDescription()} {last_line(err)}")


def append(path, line, open, write, close):
    file = open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write(file, json.dumps(line).encode() + b"\n")
    finally:
        close(file)


def last_line(err):
    text = f"{err[0].__name__}: {err[1]}"
    return text if len(text) < 2000 else text[:1000] + " … " + text[-1000:]


def multiprocessing_part(method):
    """As the modules that are made of it do (test_multiprocessing_spawn and its like)."""
    from test import _test_multiprocessing as shared

    part = type(sys)(f"multiprocessing_{method}")
    sys.modules[part.__name__] = part
    shared.install_tests_in_module_dict(vars(part), method)
    for name, value in list(vars(part).items()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and name not in MULTIPROCESSING:
            delattr(part, name)
    return unittest.defaultTestLoader.loadTestsFromModule(part)


def flat(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from flat(one)
        else:
            yield one


def main():
    module, file, *wanted = sys.argv[1:]
    # The tests see the arguments of a script without any.
    del sys.argv[1:]
    from test import support

    # No network, no sound, nothing large, nothing that takes minutes.
    support.use_resources = []
    support.verbose = False
    support.max_memuse = 0
    # Of tests of some modules the results depend on what is in the folder.
    os.mkdir("here")
    os.chdir("here")
    try:
        if module.startswith("multiprocessing:"):
            suite = multiprocessing_part(module.partition(":")[2])
        else:
            suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
    except unittest.SkipTest as reason:
        append(file, {"test": module, "outcome": "skipped", "why": str(reason)}, os.open, os.write, os.close)
        return
    if wanted:
        suite = unittest.TestSuite(test for test in flat(suite) if test.id() in wanted)
    outcomes = Outcomes(file, wanted)
    suite.run(outcomes)
    append(file, {"whole": outcomes.testsRun}, os.open, os.write, os.close)


if __name__ == "__main__":
    main()
