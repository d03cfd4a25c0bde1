"""Which calls are recorded: by module, by file, by duration, and C functions only when asked for."""

from __future__ import annotations

import sys

MONITORING = sys.version_info >= (3, 12)


def test_filters(record):
    script = """
        import json, textwrap
        def mine(): json.dumps({"a": [1]}); textwrap.dedent("x")
        for _ in range(3): mine()
    """
    only = record(script, calls="1", INFERSCOPE_CALLS_INCLUDE="json").only
    assert only.calls and {call.file.split("/")[-2] for call in only.calls} == {"json"}
    only.check_calls()
    only.check_clean()


def test_filters_exclude(record):
    script = """
        import json, textwrap
        def mine(): json.dumps({"a": [1]}); textwrap.dedent("x")
        for _ in range(3): mine()
    """
    segment = record(script, calls="1", INFERSCOPE_CALLS_EXCLUDE="json,*/textwrap.py").only
    assert segment.times("mine") == 3
    assert not any("/json/" in call.file or "textwrap" in call.file for call in segment.calls)
    assert not any("importlib._bootstrap" in call.file or "/inferscope/" in call.file for call in segment.calls)
    segment.check_calls()
    segment.check_clean()


def test_exceptions_through_code_outside_the_filter(record):
    segment = record(
        """
        import json
        def mine(text):
            try: json.loads(text, object_hook=hook)
            except ValueError: return 1
        def hook(value): raise ValueError
        for _ in range(50):
            assert mine("{}") == 1 and mine("nonsense") == 1
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
    ).only
    segment.check_calls()
    segment.check_clean()
    assert (segment.times("mine"), segment.times("hook")) == (100, 50)


def test_short_calls_are_left_out_on_request(record):
    segment = record(
        """
        import time
        def short(): pass
        def long():
            time.sleep(0.5)
            for _ in range(100): short()
        long()
    """,
        calls="1",
        INFERSCOPE_CALLS_INCLUDE="script",
        INFERSCOPE_CALLS_MIN_US="400000",
    ).only
    assert [call.function for call in segment.calls] == ["long", "<module>"]
    assert all(call.duration >= 400_000_000 for call in segment.calls)
    segment.check_clean()


def test_calls_of_c_functions(record):
    segment = record(
        """
        import math
        class Plain:
            def __init__(self): pass
        def mine():
            math.sqrt(4)
            [].append(1)
            "x".upper()
            int("3")
            sorted([2, 1], key=lambda n: -n)
            Plain()
            try: int("nonsense")
            except ValueError: pass
            len(*["x"])
        for _ in range(10): mine()
    """,
        calls="c",
        INFERSCOPE_CALLS_INCLUDE="script",
    ).only
    segment.check_calls()
    segment.check_clean()
    names = [call.name for call in segment.of("c-call")]
    assert names.count("math.sqrt") == names.count("builtins.sorted") == names.count("builtins.len") == 10
    assert any("append" in name for name in names) and any("upper" in name for name in names)
    assert segment.times("<lambda>" if not sys.version_info >= (3, 11) else "mine.<locals>.<lambda>") == 20
    if MONITORING:
        assert names.count("builtins.int") == 20


def test_no_c_calls_unless_asked_for(record):
    segment = record("len('x')", calls="1").only
    assert segment.of("c-call") == []
