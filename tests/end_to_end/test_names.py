"""Names of any kind: every corner of Unicode, a megabyte long, a million different ones;
and functions and files named like them."""

import json

import pytest
from recording import CALL, MARK, SCOPE, analyze, inferscope

pytestmark = pytest.mark.every_python

EXOTIC = [
    "",
    " ",
    "plain",
    "naïve café",
    "模型推理",
    "🧠🔥👩‍👩‍👧",
    "right \u202eto left",
    "line\nbreak\ttab\r",
    "nul\0inside",
    'quotes " and \\ and </script>',
    "\x1b[31mred\x1b[0m",
    "%s {} ${HOME} `id` $(id)",
    "\u2028\u2029\ufeff\uffff",
    "a" * 5000,
]


def test_every_name_comes_back_as_it_was(script, record):
    ours = record(
        script(f"""
            from inferscope import scope, mark_event
            for name in {EXOTIC!r}:
                with scope(name, tags={{name[:50]: name[:50]}}): pass
                mark_event(name, metadata={{"name": name[:50], "list": [1, None, True, 1.5, {{"deep": name[:50]}}]}})
        """)
    )
    assert ours.code == 0, ours.told
    cut = [name if len(name) <= 4096 else name[:4096] for name in EXOTIC]
    assert ours.trace.texts(SCOPE) == cut
    assert ours.trace.texts(MARK) == cut
    for row in ours.trace.slices(MARK):
        assert json.loads(row["args"])["name"] == row["text"][:50]
    # What we print may be shown on a terminal: no control character of the workload gets there.
    assert "\x1b[31m" not in analyze(ours.trace)
    exported = inferscope("export", ours.trace.folder, "--format", "chrome", "--output", "/dev/stdout")
    assert exported.returncode == 0, exported.stderr.decode()
    text = {event.get("name") for event in json.loads(exported.stdout)["traceEvents"]}
    assert set(cut) <= text


def test_a_lone_surrogate_is_no_crash(script, record):
    ours = record(
        script(r"""
            from inferscope import scope, mark_event
            with scope("bad \ud800 surrogate"): pass
            mark_event("fine", metadata={"bad": "\udfff"})
        """)
    )
    assert ours.code == 0, ours.told
    assert len(ours.trace.texts(SCOPE)) == 1
    assert ours.trace.texts(MARK) == ["fine"]


def test_a_name_of_a_megabyte(script, record):
    ours = record(
        script("""
            from inferscope import scope, mark_event
            with scope("m" * 1_000_000, tags={"k" * 1_000_000: "v" * 1_000_000}): pass
            mark_event("after", metadata={"big": "x" * 10_000_000})
        """)
    )
    assert ours.code == 0, ours.told
    (name,) = ours.trace.texts(SCOPE)
    assert set(name) == {"m"}
    assert 1000 <= len(name) <= 1_000_000
    assert ours.trace.texts(MARK) == ["after"]
    assert any(row["reason"] == "text-cut" for row in ours.trace.table("losses")), "what was cut is counted"


def test_a_million_different_names(script, record):
    ours = record(
        script("""
            from inferscope import scope
            for number in range(1_000_000):
                with scope(f"name number {number}"): pass
        """)
    )
    assert ours.code == 0, ours.told
    names = ours.trace.texts(SCOPE)
    assert len(names) + ours.trace.lost() >= 1_000_000
    assert len(names) > 10_000
    assert all(name.startswith("name number ") for name in names[:1000])


def test_metadata_that_is_no_json(script, record):
    ours = record(
        script("""
            import math
            from inferscope import scope, mark_event
            class Odd:
                def __repr__(self): raise RuntimeError("no repr either")
            loop = {}; loop["self"] = loop
            for value in (Odd(), loop, math.nan, math.inf, b"bytes", {1, 2}, 10**400, {(1, 2): 3}, object, "fine"):
                mark_event("m", metadata={"value": value})
                with scope("s", tags={"value": value}): pass
            print("unharmed")
        """)
    )
    assert (ours.code, ours.out) == (0, b"unharmed\n"), ours.told
    assert ours.trace.texts(MARK) == ["m"] * 10
    for row in ours.trace.slices(MARK):
        if row["args"] is not None:
            json.loads(row["args"], parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))


def test_functions_and_files_with_exotic_names(script, record):
    path = script(
        """
        def größe_模型(): return 1
        namespace = {}
        exec(compile("def odd(): return 2", "a file\\nwith 🔥 \\x1b[31m name", "exec"), namespace)
        for _ in range(10): größe_模型(); namespace["odd"]()
        """,
        name="ünïcode 模型 🔥.py",
    )
    ours = record(path, options=("--calls",))
    assert ours.code == 0, ours.told
    called = {name.rpartition(".")[2] for name in ours.trace.texts(CALL)}
    assert {"größe_模型", "odd"} <= called
    assert "\x1b[31m" not in analyze(ours.trace)
