"""Runs one module of CPython's own tests in the Python that runs this, and writes a line for each test as it begins and
as it ends: of a process that dies or hangs it is known in which test. The same for a plain run and a recorded one.

usage: one_module.py MODULE FILE [TEST ID]..."""

import importlib.util
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


# CPython's own runner has so many frames more than this one, and a test of tracemalloc counts on some.
AS_DEEP = 10
# Tests that wait for ever, with us or without. VSOCK: on a virtual machine whose host does not answer. Interpreters
# that are made or ended in a thread: in 3.11.
LEFT_OUT = {"test_socket": "VSOCK", "test__xxsubinterpreters": "thread"}


class Outcomes(unittest.TestResult):
    """What became of each test: of a test with parts, the worst of them."""

    ORDER = ("passed", "skipped", "expected failure", "unexpected success", "failed", "error")

    def __init__(self, write):
        super().__init__()
        self._write = write
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


def writer(path):
    """Writes lines into a file that is open only meanwhile: tests look at what is open, and replace functions."""
    open, write, close, dumps = os.open, os.write, os.close, json.dumps
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC

    def line(content):
        file = open(path, flags, 0o600)
        try:
            write(file, dumps(content).encode() + b"\n")
        finally:
            close(file)

    return line


def last_line(err):
    text = f"{err[0].__name__}: {err[1]}"
    return text if len(text) < 2000 else text[:1000] + " … " + text[-1000:]


PART = """from test import _test_multiprocessing as shared
shared.install_tests_in_module_dict(globals(), {method!r})
for name in set(globals()) - {kept!r}:
    if isinstance(globals()[name], type) and issubclass(globals()[name], shared.unittest.TestCase):
        del globals()[name]
"""


def multiprocessing_part(method):
    """As the modules that are made of it do (test_multiprocessing_spawn and its like). A file, for processes that are
    spawned import it."""
    name = f"part_of_multiprocessing_{method}"
    folder = os.path.dirname(os.getcwd())
    with open(os.path.join(folder, f"{name}.py"), "w", encoding="utf-8") as file:
        file.write(PART.format(method=method, kept=set(MULTIPROCESSING)))
    sys.path.insert(0, folder)
    return unittest.defaultTestLoader.loadTestsFromName(name)


def flat(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from flat(one)
        else:
            yield one


def load(module):
    if module.startswith("multiprocessing:"):
        return multiprocessing_part(module.partition(":")[2])
    name = f"test.{module}"
    if importlib.util.find_spec(name) is None:
        return None
    return unittest.defaultTestLoader.loadTestsFromName(name)


def run_below(frames, suite, outcomes):
    if frames:
        run_below(frames - 1, suite, outcomes)
    else:
        suite.run(outcomes)


def main():
    module, file, *wanted = sys.argv[1:]
    # The tests see the arguments of a script without any.
    del sys.argv[1:]
    write = writer(file)
    ours = sys.modules.get("inferscope")
    write({"recorded": ours is not None and ours.is_recording()})
    from test import support

    # No network, no sound, nothing large, nothing that takes minutes.
    support.use_resources = []
    # Some tests look at what is in the folder that they run in.
    os.mkdir("here")
    os.chdir("here")
    try:
        suite = load(module)
    except unittest.SkipTest as reason:
        write({"test": module, "outcome": "skipped", "why": str(reason)})
        suite = unittest.TestSuite()
    if suite is None:
        write({"missing": module})
        return
    if wanted or module in LEFT_OUT:
        tests = flat(suite)
        suite = unittest.TestSuite(
            test
            for test in tests
            if (not wanted or test.id() in wanted) and LEFT_OUT.get(module, "\0") not in test.id()
        )
    outcomes = Outcomes(write)
    run_below(AS_DEEP, suite, outcomes)
    write({"whole": outcomes.testsRun})


if __name__ == "__main__":
    main()
