"""NVTX's C functions under `inferscope run`: every form of a call, calls that no program should make, and what happens
beyond every limit. The program sees what NVTX documents."""

import json
import subprocess
import sys
from pathlib import Path

from nvtx_ranges import environment, ranges

HERE = Path(__file__).resolve().parent
PAIRS = "unpaired"

CALLS = """
import json
from nvtx_calls import ASCII, REGISTERED, UNICODE, attributes, load
nvtx = load()
"""


def test_every_form_of_a_call(tmp_path):
    seen = ranges(
        tmp_path,
        CALLS
        + """
domain, wide = nvtx.nvtxDomainCreateA(b"narrow"), nvtx.nvtxDomainCreateW("weit ≥")
assert domain == nvtx.nvtxDomainCreateA(b"narrow") != wide
nvtx.nvtxNameCategoryA(1, b"one")
nvtx.nvtxNameCategoryW(2, "zwei ≥")
nvtx.nvtxDomainNameCategoryA(domain, 1, b"one of narrow")
nvtx.nvtxDomainNameCategoryW(domain, 2, "zwei")
registered = nvtx.nvtxDomainRegisterStringA(domain, b"registered")
registered_wide = nvtx.nvtxDomainRegisterStringW(domain, "größe")
assert registered and registered == nvtx.nvtxDomainRegisterStringA(domain, b"registered") != registered_wide
nvtx.nvtxMarkA(b"mark a"); nvtx.nvtxMarkW("mark w ≥"); nvtx.nvtxMarkEx(attributes(ASCII, b"mark ex", 1))
nvtx.nvtxDomainMarkEx(domain, attributes(REGISTERED, registered, 1))
nvtx.nvtxDomainMarkEx(domain, attributes(REGISTERED, registered_wide, 9))
nvtx.nvtxDomainNameCategoryA(domain, 9, b"named late")
nvtx.nvtxDomainMarkEx(domain, attributes(ASCII, b"after its name", 9))
levels = [
    nvtx.nvtxRangePushA(b"push a"),
    nvtx.nvtxRangePushW("push w ≥"),
    nvtx.nvtxRangePushEx(attributes(UNICODE, "push ex ≥", 2)),
    nvtx.nvtxDomainRangePushEx(domain, attributes(ASCII, b"push domain", 2)),
    nvtx.nvtxDomainRangePushEx(wide, attributes(ASCII, b"push wide")),
    nvtx.nvtxRangePop(),
    nvtx.nvtxDomainRangePop(domain),
    nvtx.nvtxDomainRangePop(wide),
    nvtx.nvtxRangePop(),
    nvtx.nvtxRangePop(),
]
ids = [
    nvtx.nvtxRangeStartA(b"start a"),
    nvtx.nvtxRangeStartW("start w ≥"),
    nvtx.nvtxRangeStartEx(attributes(ASCII, b"start ex")),
    nvtx.nvtxDomainRangeStartEx(domain, attributes(ASCII, b"start domain")),
]
for id in ids[:3]: nvtx.nvtxRangeEnd(id)
nvtx.nvtxDomainRangeEnd(domain, ids[3])
ids.append(nvtx.nvtxRangeStartA(b"start again"))
nvtx.nvtxRangeEnd(ids[4])
nvtx.nvtxDomainDestroy(domain)
nvtx.nvtxNameOsThreadA(1, b"thread")
nvtx.nvtxInitialize(None)
print(json.dumps([levels, ids]))
""",
    )
    levels, ids = seen.said()
    assert levels == [0, 1, 2, 0, 0, 2, 0, 0, 1, 0]
    assert len(set(ids)) == 5 and 0 not in ids
    args = {row["text"]: json.loads(row["args"] or "{}") for row in seen.rows}
    assert args == {
        "mark a": {},
        "mark w ≥": {},
        "mark ex": {"category": "one"},
        "registered": {"domain": "narrow", "category": "one of narrow"},
        "größe": {"domain": "narrow", "category": 9},
        "after its name": {"domain": "narrow", "category": "named late"},
        "push a": {},
        "push w ≥": {},
        "push ex ≥": {"category": "zwei ≥"},
        "push domain": {"domain": "narrow", "category": "zwei"},
        "push wide": {"domain": "weit ≥"},
        "start a": {},
        "start w ≥": {},
        "start ex": {},
        "start domain": {"domain": "narrow"},
        "start again": {},
    }
    assert len(seen.rows) == len(args) and seen.losses() == {}


def test_calls_that_no_program_should_make(tmp_path):
    seen = ranges(
        tmp_path,
        CALLS
        + """
import ctypes
answers = [nvtx.nvtxRangePop(), nvtx.nvtxDomainRangePop(None)]
for id in (0, 1, 12345 << 16 | 7, 2**64 - 2): nvtx.nvtxRangeEnd(id)
once = nvtx.nvtxRangeStartA(b"ended twice")
for _ in range(2): nvtx.nvtxRangeEnd(once)
nvtx.nvtxMarkA(None); nvtx.nvtxMarkW(None); nvtx.nvtxMarkEx(None)
nvtx.nvtxMarkEx(attributes(ASCII, b"too small", size=16)); nvtx.nvtxMarkEx(attributes(77, b"no such type"))
nvtx.nvtxMarkEx(attributes(REGISTERED, None)); nvtx.nvtxMarkEx(attributes())
nvtx.nvtxMarkA(b""); nvtx.nvtxMarkA(b"bad \\xff\\xfe bytes")
nvtx.nvtxMarkEx(attributes(UNICODE, ctypes.addressof(numbers := (ctypes.c_uint32 * 3)(0x41, 0xD800, 0))))
nvtx.nvtxMarkA(b"long " + b"x" * 1_000_000); nvtx.nvtxMarkW("wide " + "é" * 1_000_000)
quoted = nvtx.nvtxDomainCreateA(b'a "quoted" \\\\ domain \\x01\\n' + b"\\x02" * 5000)
nvtx.nvtxDomainNameCategoryA(quoted, 1, b"\\x03" * 5000)
nvtx.nvtxDomainMarkEx(quoted, attributes(ASCII, b"odd domain", 1))
assert nvtx.nvtxDomainCreateA(None)
print(json.dumps(answers))
""",
    )
    assert seen.said() == [-1, -1]
    assert (
        seen.names["ended twice"]
        == seen.names["bad \ufffd\ufffd bytes"]
        == seen.names["A\ufffd"]
        == seen.names[""]
        == 1
    )
    assert seen.names["(no message)"] == 7
    longest = {name[:4]: len(name.encode()) for name in seen.names if len(name) > 1000}
    assert longest == {"long": 4096, "wide": 4095}
    odd = seen.args("odd domain")
    assert odd["domain"].startswith('a "quoted" \\ domain \x01\n\x02') and odd["category"] == "\x03" * 256
    assert seen.losses()[PAIRS] == 7


def test_everything_is_bounded(tmp_path):
    seen = ranges(
        tmp_path,
        CALLS
        + """
levels = [nvtx.nvtxRangePushA(b"deep") for _ in range(200)]
levels += [nvtx.nvtxRangePop() for _ in range(200)]
ids = [nvtx.nvtxRangeStartA(b"open") for _ in range(20000)]
for id in ids: nvtx.nvtxRangeEnd(id)
for number in range(1500): nvtx.nvtxMarkEx(attributes(ASCII, b"category", number + 1))
domains = [nvtx.nvtxDomainCreateA(b"domain %d" % number) for number in range(400)]
for domain in domains: nvtx.nvtxDomainMarkEx(domain, attributes(ASCII, b"domain"))
for number in range(20000): nvtx.nvtxMarkA(b"name %d" % number)
print(json.dumps([levels, len(set(ids))]))
""",
    )
    levels, ids = seen.said()
    assert levels == [*range(200), *reversed(range(200))] and ids == 20000
    assert (seen.names["deep"], seen.names["open"]) == (128, 16384)
    assert (seen.names["category"], seen.names["domain"]) == (1500, 400)
    assert len({row["args"] for row in seen.rows if row["text"] == "category"}) == 1024 + 1
    assert sum(name.startswith("name ") for name in seen.names) == 20000
    losses = seen.losses()
    assert losses.pop(PAIRS) == 72
    # Ranges, categories and domains beyond what there is room for.
    assert sum(losses.values()) == (20000 - 16384) + (1500 - 1024) + (400 - 255)


def test_without_a_recorder_nothing_happens(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n{CALLS}"
        "print(nvtx.nvtxRangePushA(b'a'), nvtx.nvtxRangePop())\n"
        "print(nvtx.nvtxRangeStartA(b'b'), nvtx.nvtxDomainCreateA(b'c'))\n"
    )
    where = "import inferscope, pathlib; print(*pathlib.Path(inferscope.__file__).parent.glob('_cuda*.so'))"
    (library,) = subprocess.run(
        [sys.executable, "-c", where], capture_output=True, text=True, check=True
    ).stdout.split()
    said = [
        subprocess.run(
            [sys.executable, script], capture_output=True, text=True, env=environment(**extra), check=True
        ).stdout
        for extra in (
            {},
            {"NVTX_INJECTION64_PATH": library},
            {"NVTX_INJECTION64_PATH": library, "INFERSCOPE_SEGMENTS": "/nowhere"},
        )
    ]
    assert said == ["-2 -2\n0 None\n"] * 3
