"""Names, tags and metadata: any Unicode, any size, any object; what cannot be kept is cut and counted."""

from __future__ import annotations

import json

import pytest


def test_any_name_is_recorded(record):
    segment = record(r"""
        from inferscope import scope, mark_event
        class Broken:
            def __str__(self): raise RuntimeError("no")
        class Text(str):
            def __str__(self): raise RuntimeError("no")
        names = ["", "é☃😀", "tab\tline\nnul\0", "\ud800 lone", "unit\x1fseparator"]
        names += [3, None, ("a", 1), Broken(), Text("sub")]
        for name in names:
            with scope(name): pass
            mark_event(name)
    """).only
    names = [span.name for span in segment.spans.values()]
    assert names[:4] == ["", "é☃😀", "tab\tline\nnul\0", "\\ud800 lone"]
    assert names[4:] == [
        "unit\u241fseparator", "3", "None", "('a', 1)", "(a name that cannot be written)", "sub",
    ]  # fmt: skip
    assert [mark.name for mark in segment.marks] == names
    assert segment.status["scopes"].errors == 0


def test_huge_names_are_cut_and_counted(record):
    segment = record("""
        from inferscope import scope
        with scope("x" * 1_000_000): pass
        with scope("é" * 1_000_000): pass
    """).only
    first, second = (span.name for span in segment.spans.values())
    assert first == "x" * 4096
    assert second == "é" * 2048
    assert segment.status["scopes"].cut >= 2


@pytest.mark.one_python
def test_a_million_names_are_all_there(record):
    # Rings are sized for millions of records when calls are recorded; here they hold names alone.
    settings = {"INFERSCOPE_TRACE_SIZE_MB": "600", "INFERSCOPE_CALLS_INCLUDE": "no_such_module"}
    segment = record(
        """
        from inferscope import mark_event, scope
        for n in range(1_000_000):
            mark_event(f"name {n}")
        with scope("one more"): pass
    """,
        calls="1",
        **settings,
    ).only
    assert [mark.name for mark in segment.marks] == [f"name {n}" for n in range(1_000_000)]
    assert segment.tree() == [["one more"]]
    segment.check_clean()


def test_tags_of_every_kind(record):
    segment = record(r"""
        from inferscope import mark_event
        import enum
        class Broken:
            def __str__(self): raise RuntimeError("no")
        class Other:
            def __str__(self): return 'other "quoted"'
        class Shaped:
            shape, dtype = (2, 3), "float16"
            def __str__(self): raise AssertionError("an array is not printed")
        class Number(enum.IntEnum):
            ONE = 1
        endless = {}; endless["self"] = endless
        deep = []
        for _ in range(500): deep = [deep]
        mark_event("all", metadata={
            "str": "é\"\\\n\t\x01", "int": -5, "big": 10**30, "huge": 10**5000, "float": 1.5, "inf": float("inf"),
            "nan": float("nan"), "true": True, "none": None, "list": [1, (2, 3)], "dict": {"a": {"b": 1}}, 7: "key",
            None: "none key", "broken": Broken(), "other": Other(), "shaped": Shaped(), "enum": Number.ONE,
            "surrogate": "\udcff", "bytes": b"x",
        })
        mark_event("endless", metadata=endless)
        mark_event("deep", metadata={"deep": deep})
        mark_event("no dict", metadata=[1, 2])
        mark_event("empty", metadata={})
    """).only
    marks = {mark.name: mark.tags for mark in segment.marks}
    tags = marks["all"]
    assert (tags["str"], tags["int"], tags["big"]) == ('é"\\\n\t\x01', -5, str(10**30))
    assert (tags["float"], tags["inf"], tags["nan"], tags["true"], tags["none"]) == (1.5, "inf", "NaN", True, None)
    assert (tags["list"], tags["dict"], tags["7"], tags["None"]) == ([1, [2, 3]], {"a": {"b": 1}}, "key", "none key")
    assert tags["broken"] == "<Broken that cannot be written>"
    assert (tags["other"], tags["shaped"]) == ('other "quoted"', "Shaped[2, 3] float16")
    assert (tags["enum"], tags["surrogate"], tags["bytes"]) == (1, "\\udcff", "b'x'")
    assert "self" in marks["endless"] and "deep" in marks["deep"]
    assert marks["no dict"] == {"value": [1, 2]} and marks["empty"] == {}
    assert segment.status["scopes"].errors == 0


def test_large_tags_are_cut_and_stay_json(record):
    segment = record("""
        from inferscope import mark_event
        mark_event("long", metadata={"text": "x" * 100_000, "after": 1})
        mark_event("many", metadata={f"key {n}": n for n in range(10_000)})
        mark_event("nested", metadata={"a": [["y" * 50] * 40] * 40})
        mark_event("quotes", metadata={"text": '"' * 10_000})
    """).only
    for mark in segment.marks:
        assert len(mark.args.encode()) <= 4096
        json.loads(mark.args)
    marks = {mark.name: mark.tags for mark in segment.marks}
    assert marks["many"]["key 0"] == 0 and len(marks["many"]) > 100
    assert set(marks["long"]["text"]) == {"x"} and len(marks["long"]["text"]) > 4000
    assert segment.status["scopes"].cut >= 4


def test_the_users_interrupts_are_not_swallowed(record):
    segment = record("""
        from inferscope import mark_event, scope
        class Interrupts:
            def __str__(self): raise KeyboardInterrupt
        caught = 0
        for use in (lambda: mark_event("m", metadata={"x": Interrupts()}),
                    lambda: mark_event(Interrupts()),
                    lambda: scope("s", tags={"x": Interrupts()}).__enter__()):
            try: use()
            except KeyboardInterrupt: caught += 1
        assert caught == 3
        with scope("after"): pass
    """).only
    assert segment.tree() == [["after"]]
    segment.check_clean()


def test_users_code_may_use_scopes_while_its_tags_are_written(record):
    segment = record("""
        from inferscope import mark_event, scope
        class Curious:
            def __str__(self):
                with scope("inside str"): mark_event("seen")
                outer.__enter__(); outer.__exit__(None, None, None)
                tags.clear(); tags.update({n: n for n in range(100)})
                return "curious"
        tags = {"a": Curious(), "b": 2}
        outer = scope("outer")
        with scope("s", tags=tags): pass
    """).only
    assert [span.name for span in segment.spans.values()] == ["inside str", "outer", "s"]
    assert next(span for span in segment.spans.values() if span.name == "s").tags == {"a": "curious"}
    assert segment.status["scopes"].cut == 1 and segment.status["scopes"].errors == 0
