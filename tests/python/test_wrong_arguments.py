"""A call whose arguments do not fit says which one it is, in CPython's own words, and what was probably meant."""

from __future__ import annotations

import pytest
from inferscope import mark_event, scope, step

UNEXPECTED = "got an unexpected keyword argument"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (scope, "scope() missing 1 required positional argument: 'name'"),
        (lambda: scope(tags={}), "scope() missing 1 required positional argument: 'name'"),
        (lambda: scope("a", {}, 3), "scope() takes from 1 to 2 positional arguments but 3 were given"),
        (lambda: scope("a", name="b"), "scope() got multiple values for argument 'name'"),
        (lambda: scope(nme="x"), f"scope() {UNEXPECTED} 'nme'. Did you mean 'name'?"),
        (lambda: scope("x", tag={}), f"scope() {UNEXPECTED} 'tag'. Did you mean 'tags'?"),
        (lambda: scope("x", colour="red"), f"scope() {UNEXPECTED} 'colour'; it takes 'name', 'tags'"),
        (lambda: scope("x", **{"größe": 1}), f"scope() {UNEXPECTED} 'größe'; it takes 'name', 'tags'"),
        (lambda: scope("x", **{"\udcff": 1}), f"scope() {UNEXPECTED} '\udcff'; it takes 'name', 'tags'"),
        (lambda: scope("x", **{"n" * 10_000: 1}), f"scope() {UNEXPECTED} '{'n' * 10_000}'; it takes 'name', 'tags'"),
        (step, "step() missing 1 required argument: a name, or what to iterate over"),
        (lambda: step([1], nam="x"), f"step() {UNEXPECTED} 'nam'. Did you mean 'name'?"),
        (lambda: step("a", "b", {}, 4), "step() takes from 0 to 3 positional arguments but 4 were given"),
        (mark_event, "mark_event() missing 1 required positional argument: 'name'"),
        (lambda: mark_event("x", metdata={}), f"mark_event() {UNEXPECTED} 'metdata'. Did you mean 'metadata'?"),
        (lambda: mark_event("x", tags={}), f"mark_event() {UNEXPECTED} 'tags'; it takes 'name', 'metadata'"),
        (lambda: scope("a")(1, 2), "scope('a') as a decorator takes one function but 2 arguments were given"),
        (
            lambda: step("a")(print, end=""),
            "step('a') as a decorator takes one function and no keyword arguments, got ('end',)",
        ),
        (
            lambda: scope("a").__call__(print, end=""),
            "scope('a') as a decorator takes one function and no keyword arguments, got ('end',)",
        ),
    ],
)
def test_the_argument_is_named(wrong, words):
    with pytest.raises(TypeError) as raised:
        wrong()
    assert str(raised.value) == words


def test_arguments_that_fit_are_taken_by_name(record):
    segment = record("""
        from inferscope import scope, mark_event
        with scope(name="by name", tags=None): pass
        mark_event(name="by name", metadata=None)
    """).only
    assert segment.tree() == [["by name"]]
