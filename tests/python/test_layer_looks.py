"""Whose calls are looked at, and until when: programs with several models, with models that fail, come and go, and a
GPU that is recorded in windows."""

from __future__ import annotations

from collections import Counter

import pytest
from layer_ranges import CALL, layers, names

__all__ = ["layers"]

TARGET = """
class Target(Model):
    pass

target = Target(a=Leaf(), b=Leaf())
"""
# Looks come back when the test says so. What the library that records the GPU would say stands in for it.
LATER = """
import inferscope._layers as layers
layers._FIRST_PAUSE_S = layers._LONGEST_PAUSE_S = 3600
def look_again():
    layers._State.due = 0
    layers._rest()
    await_watched()
"""
WINDOWS = """
import inferscope._layers as layers, threading
class Windows:
    number, changed = 0, threading.Condition()
    def now(self):
        return self.number
    def turn(self, number):
        with self.changed:
            self.number = number
            self.changed.notify_all()
    def wait_open(self, over):
        with self.changed:
            while not self.changed.wait_for(lambda: self.number % 2 == 0 or over(), 0.05):
                pass
windows = layers._State.windows = Windows()
layers._FIRST_PAUSE_S = layers._LONGEST_PAUSE_S = 3600
"""
AWAIT = """
import time
def await_watched(wanted=True):
    deadline = time.monotonic() + 60
    while watched() != wanted:
        assert time.monotonic() < deadline, "nobody looked"
        time.sleep(0.001)
"""


@pytest.mark.parametrize("drafts", [1, 5, 12])
def test_a_model_that_is_called_after_another_has_its_calls_too(layers, drafts):
    """Speculative decoding: a draft model some times, then the target."""
    segment = layers(f"""
        {TARGET.strip().replace(chr(10), chr(10) + 8 * " ")}
        for _ in range(40):
            for _ in range({drafts}):
                model(1)
            target(1)
        assert not watched()
    """)
    seen = Counter(names(segment))
    assert (seen["Model"], seen["a.a"]) == (4, 4), "known models are passed over"
    assert (seen["Target"], seen["Target.a"], seen["Target.b"]) == (4, 4, 4)


def test_later_looks_are_for_every_model(layers):
    segment = layers(
        AWAIT
        + TARGET
        + """
for number in range(3):
    if number:
        look_again()
    while watched():
        model(1)
        target(1)
""",
        before=LATER,
    )
    seen = Counter(name for name in names(segment) if name in ("Model", "Target"))
    assert seen == {"Model": 6, "Target": 6}, "four, and then one and one more"


def test_layers_that_nothing_calls_but_the_program_have_their_calls_each(layers):
    segment = layers("""
        leaves = [Leaf() for _ in range(100)]
        for _ in range(6):
            for leaf in leaves:
                leaf(1)
        assert not watched()
    """)
    assert sorted(Counter(names(segment)).values()) == 100 * [4]


def test_models_that_are_new_at_every_call_do_not_keep_a_look_going(layers):
    segment = layers("""
        for number in range(64):
            assert watched(), number
            Leaf()(1)
        assert not watched()
    """)
    assert len(names(segment)) == 64


def test_a_model_that_always_fails_does_not_keep_a_look_going(layers):
    segment = layers("""
        class Fails(Model):
            def forward(self, x):
                self.a(x)
                raise ValueError(x)

        fails = Fails(a=Leaf(), b=Leaf())
        for number in range(5000):
            try:
                fails(1)
            except ValueError:
                pass
        assert not watched()
    """)
    assert Counter(names(segment)) == {"Fails": 4, "a": 4}


def test_a_known_model_that_fails_hides_no_other_for_long(layers):
    segment = layers(
        TARGET
        + """
for _ in range(4):
    model(1)
model.forward = lambda x: 1 / 0
for _ in range(20):
    for _ in range(4):
        try:
            model(1)
        except ZeroDivisionError:
            pass
    target(1)
"""
    )
    assert Counter(names(segment))["Target"] == 4


def test_threads_that_call_one_model_at_once_are_looked_at_each_by_itself(layers):
    segment = layers("""
        import threading
        ready = threading.Barrier(4)
        def work():
            ready.wait()
            for _ in range(30):
                assert model(1) == 4
        all_threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in all_threads:
            thread.start()
        for thread in all_threads:
            thread.join()
        assert not watched()
    """)
    seen = Counter(names(segment))
    assert 4 <= seen["Model"] <= 8, "each thread may be in a call when the fourth ends"
    assert set(seen) == set(CALL)


def test_copies_and_models_that_are_gone_leave_nothing(layers):
    segment = layers("""
        import copy, gc, weakref
        import inferscope._layers as layers
        model(1)
        other = copy.deepcopy(model)
        assert vars(other).keys() == vars(model).keys() == {"_modules"}
        other(1)
        gone = weakref.ref(other)
        del other
        assert gone() is None, "nothing of ours holds it"
        for _ in range(200):
            Model(a=Leaf(), b=Leaf())(1)
        while watched():
            model(1)
        gc.collect()
        assert len(layers._State.calls._models) == 1
        assert len(layers._State.names._paths) < 20
        assert all(not thread.ranges for thread in layers._State.threads.values())
    """)
    assert names(segment)[5] == "Model-2"


def test_a_look_that_begins_in_a_call_which_never_ends_is_given_up(layers):
    layers(
        AWAIT
        + """
class Serves(Model):
    def forward(self, x):
        look_again()
        layers._MOST_WAITED = 100
        for _ in range(101):
            assert watched()
            self.a(x)
        assert not watched()

while watched():
    model(1)
Serves(a=Leaf(), b=Leaf())(1)
""",
        before=LATER,
    )


def test_calls_between_two_windows_are_not_looked_at(layers):
    segment = layers(
        AWAIT
        + """
windows.turn(1)
assert watched(), "the program may not use the GPU yet"
model(1)
assert not watched()
for number in (2, 4, 6):
    windows.turn(number)
    await_watched()
    model(1)
    windows.turn(number + 1)
    model(1)
    assert not watched()
windows.turn(8)
await_watched()
while watched():
    model(1)
""",
        before=WINDOWS,
    )
    assert names(segment) == 4 * CALL, "those in the windows"


def test_calls_from_before_the_gpu_was_recorded_do_not_count(layers):
    segment = layers(
        """
        for _ in range(10):
            model(1)
        windows.turn(2)
        while watched():
            model(1)
        """,
        before=WINDOWS,
    )
    assert names(segment) == 8 * CALL


def test_a_call_that_a_window_cuts_counts_half(layers):
    segment = layers(
        AWAIT
        + """
class Long(Model):
    def forward(self, x):
        windows.turn(windows.number + 1)
        return self.a(x)

long = Long(a=Leaf(), b=Leaf())
windows.turn(2)
for _ in range(8):
    await_watched()
    long(1)
    assert not watched()
    windows.turn(windows.number + 1)
await_watched()
long(1)
assert not watched()
""",
        before=WINDOWS,
    )
    assert Counter(names(segment)) == {"Long": 8, "a": 8}
