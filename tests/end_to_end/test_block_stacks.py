"""Blocks have the Python stack that asked for them, read without the GIL and under the allocator's lock: with stand-ins
for PyTorch's libraries (tests/fake_torch) and for the driver (tests/fake_cupti). Where a stack cannot be had the trace
says why, and the program goes on."""

import json
import sys

import pytest
from recording import REPOSITORY, inferscope

sys.path.insert(0, str(REPOSITORY / "tests" / "fake_torch"))

import fake_torch

pytestmark = pytest.mark.every_python
LARGE, GROWTH, SAMPLED = 1, 2, 3
NO_PYTHON, ENDING, TOO_MANY, BUSY = 1, 2, 3, 4
# Blocks of 2 MiB: each has a stack. `here` gives the line that it stands in, for the line of the call beside it.
PROGRAM = """
    import json, os, sys, threading
    sys.path.insert(0, sys.argv[1])
    import torch
    block, MIB, told = torch.cuda.c10_cuda_block, 1 << 20, {}
    def here(name): told[name] = sys._getframe(1).f_lineno
    def tell(): print(json.dumps(told))
    assert driver.cuInit(0) == 0
"""


@pytest.fixture(scope="session")
def torch(tmp_path_factory):
    return fake_torch.module(fake_torch.build(tmp_path_factory.mktemp("torch")))


def play(gpu, text, torch, *options):
    events = () if any(option.startswith("--memory-events") for option in options) else ("--memory-events=gpu",)
    seen = gpu.play("", command=(gpu.python(PROGRAM + text), torch), options=(*events, *options))
    assert seen.recorded.code == 0, seen.recorded.told
    return seen


class Blocks:
    """Blocks by address, each with its frames as (function, line), innermost first."""

    def __init__(self, seen):
        self.rows = [row for row in seen.trace.table("blocks") if row["operation"] != 2]
        self.names = {row["id"]: row for row in seen.trace.table("names")}
        self.stacks = {row["id"]: row for row in seen.trace.table("stacks")}
        self.by_address = {row["address"]: row for row in self.rows}
        out = seen.recorded.out.decode().splitlines()
        self.told = json.loads(out[-1]) if out and out[-1].startswith("{") else {}

    def frames(self, row):
        found, at = [], row["stack"]
        while at:
            stack = self.stacks[at]
            found.append((self.names[stack["name"]]["text"], stack["line"]))
            at = stack["parent"]
        return found

    def at(self, address):
        return self.frames(self.by_address[address])

    def why(self, address):
        row = self.by_address[address]
        return row["stack_reason"], row["stack_missing"]


def qualified(*names):
    """What a function is called: 3.10 keeps no qualified names in its code."""
    return names[-1] if sys.version_info < (3, 11) else ".".join(names)


def test_a_block_has_the_lines_that_asked_for_it(gpu, torch):
    text = """
    class Model:
        def forward(self):
            block(0x1000, 2 * MIB, 0); here("forward")
            return [self.inner(), 3]
        def inner(self):
            return (
                block(0x2000,
                      2 * MIB, 0),
                here("inner"),
            )
    Model().forward(); here("main")
    tell()
    """
    seen = play(gpu, text, torch)
    blocks = Blocks(seen)
    told, forward, inner = blocks.told, qualified("Model", "forward"), qualified("Model", "inner")
    assert blocks.at(0x1000) == [(forward, told["forward"]), ("<module>", told["main"])]
    # The call is said to be on the line that it begins on.
    assert blocks.at(0x2000) == [
        (inner, told["inner"] - 2),
        (forward, told["forward"] + 1),
        ("<module>", told["main"]),
    ]
    assert blocks.why(0x1000) == (LARGE, None)
    file = blocks.names[blocks.stacks[blocks.by_address[0x1000]["stack"]]["name"]]
    assert file["file"].endswith("workload.py") and file["line"] == told["forward"] - 1
    assert seen.lost() == 0


def test_frames_of_every_kind_are_read(gpu, torch):
    text = """
    def each():
        yield block(0x1000, 2 * MIB, 0)
    def through_c(): return list(map(lambda _: block(0x2000, 2 * MIB, 0), [1]))
    async def waits(): return block(0x3000, 2 * MIB, 0)
    def m\u00e9moire(): list(each()); through_c()
    m\u00e9moire()
    try: waits().send(None)
    except StopIteration: pass
    class Last:
        def __del__(self): block(0x4000, 2 * MIB, 0)
    def leave(): last = Last()
    leave()
    def deep(more): deep(more - 1) if more else block(0x5000, 2 * MIB, 0)
    deep(400)
    exec(compile("def made():\\n\\n    block(0x6000, 2 * MIB, 0)\\nmade()", "/made.py", "exec"))
    """
    blocks = Blocks(play(gpu, text, torch))
    functions = {address: [name for name, _ in blocks.at(address)] for address in blocks.by_address}
    assert functions[0x1000] == ["each", "m\u00e9moire", "<module>"]
    assert functions[0x2000] == [
        qualified("through_c", "<locals>", "<lambda>"),
        "through_c",
        "m\u00e9moire",
        "<module>",
    ]
    assert functions[0x3000] == ["waits", "<module>"]
    assert functions[0x4000][0] == qualified("Last", "__del__") and functions[0x4000][-1] == "<module>"
    assert functions[0x5000] == ["deep"] * 64, "as many as are read, from the innermost outwards"
    assert blocks.at(0x6000)[:2] == [("made", 3), ("<module>", 4)]


def test_why_a_stack_is_there_is_said(gpu, torch):
    text = """
    block(0x1000, 4096, 0)
    torch.cuda.c10_cuda_reserve(20 * MIB)
    block(0x2000, 4096, 0)
    block(0x3000, MIB, 0)
    torch.cuda.c10_cuda_fail(70 << 30, 0)
    for at in range(2000): block(0x10000 + 0x1000 * at, 64 << 10, 1)
    """
    blocks = Blocks(play(gpu, text, torch))
    # The program's first block: nothing was reserved before CUDA was there.
    assert [blocks.why(address) for address in (0x1000, 0x2000, 0x3000, 0)] == [
        (GROWTH, None),
        (GROWTH, None),
        (LARGE, None),
        (LARGE, None),
    ]
    small = [row for row in blocks.rows if row["device"] == 1][1:]
    drawn = [row for row in small if row["stack_reason"] == SAMPLED]
    assert all(row["stack_reason"] is None and row["stack"] is None for row in small if row not in drawn)
    # Each with 0.118: 235 of 1999 are expected, with a deviation of 14.4.
    assert 235 - 72 < len(drawn) < 235 + 72 and all(blocks.frames(row) for row in drawn)


def test_no_stacks_are_read_where_none_are_asked_for(gpu, torch):
    text = """
    block(0x1000, 4 * MIB, 0)
    assert "inferscope._stacks" not in sys.modules
    """
    blocks = Blocks(play(gpu, text, torch, "--memory-stacks-kb=0"))
    assert [(row["bytes"], row["stack"], row["stack_reason"]) for row in blocks.rows] == [(4 << 20, None, None)]


def test_a_thread_without_python_has_no_stack(gpu, torch):
    text = """
    torch.cuda.c10_cuda_in_a_thread(2 * MIB)
    """
    blocks = Blocks(play(gpu, text, torch))
    assert blocks.why(0x7000) == (LARGE, NO_PYTHON)


def test_many_threads_with_and_without_the_gil_have_their_own_stacks(gpu, torch):
    text = """
    import ctypes
    held = ctypes.PyDLL(sys.argv[1] + "/libc10_cuda.so").c10_cuda_block
    held.argtypes = block.argtypes
    def without(at): block(at, 2 * MIB, 0)
    def under(at): held(at, 2 * MIB, 0)
    def work(number):
        for at in range(400):
            (under if at % 2 else without)(0x1000000 * (number + 1) + at * 16)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    """
    seen = play(gpu, text, torch)
    blocks = Blocks(seen)
    assert len(blocks.rows) == 2400 and seen.lost() == 0
    missing = [row["stack_missing"] for row in blocks.rows if row["stack_missing"]]
    assert set(missing) <= {BUSY} and len(missing) < 1200
    for row in blocks.rows:
        if row["stack"]:
            called = "under" if row["address"] // 16 % 2 else "without"
            names = [name for name, _ in blocks.frames(row)]
            assert names[:2] == [called, "work"], names


def test_code_that_is_made_and_freed_in_a_loop_keeps_its_own_names(gpu, torch):
    text = """
    for at in range(3000):
        source = "\\n" * (at % 50) + f"def made_{at}(): block({at + 1} * 16, 2 * MIB, 0)\\nmade_{at}()"
        names = {"block": block, "MIB": MIB}
        exec(compile(source, "<made>", "exec"), names)
        del names
    """
    blocks = Blocks(play(gpu, text, torch))
    assert len(blocks.rows) == 3000
    for row in blocks.rows:
        at = row["address"] // 16 - 1
        assert blocks.frames(row)[:2] == [(f"made_{at}", at % 50 + 1), ("<module>", at % 50 + 2)]


def test_more_stacks_than_are_kept_are_counted_and_the_rest_stays(gpu, torch):
    text = """
    made = {}
    for at in range(100_000):
        code = block_of = made.get("code")
        if code is None:
            exec(compile("def f(at): block(at, 2 * MIB, 0)", "<f>", "exec"), globals())
            code = made["code"] = f.__code__
        f.__code__ = code.replace(co_firstlineno=at + 1)
        f(at * 16 + 16)
    """
    seen = play(gpu, text, torch)
    blocks = Blocks(seen)
    read = [row for row in blocks.rows if row["stack"]]
    missing = [row for row in blocks.rows if row["stack_missing"]]
    assert len(blocks.rows) == len(read) + len(missing) == 100_000 and seen.lost() == 0
    assert {row["stack_missing"] for row in missing} == {TOO_MANY}
    assert 40_000 < len(read) <= 65_536
    assert all(blocks.frames(row)[0] == ("f", row["address"] // 16) for row in read[::500])


def test_an_interpreter_that_ends_is_not_read(gpu, torch):
    """Threads that are in the allocator meanwhile lose their interpreter's state: the program ends as without us."""
    text = """
    import atexit, ctypes, time
    torch.c10.c10_cpu_alloc(1)
    def forever():
        at = 0x100000
        while True:
            block(at, 2 * MIB, 0); at += 16
    for _ in range(4): threading.Thread(target=forever, daemon=True).start()
    # Registered after ours, so that it runs before: reading goes on.
    atexit.register(lambda: (time.sleep(0.05), block(0x10, 2 * MIB, 0)))
    library = torch.cuda
    class AtTheVeryEnd:
        def __del__(self): library.c10_cuda_block(0x20, 2 * MIB, 0)
    sys.kept = AtTheVeryEnd()
    """
    blocks = Blocks(play(gpu, text, torch))
    assert blocks.why(0x10) == (LARGE, None)
    if 0x20 in blocks.by_address:
        assert blocks.why(0x20) == (LARGE, ENDING)
    assert {row["stack_missing"] for row in blocks.rows} <= {None, ENDING, BUSY}


def test_a_forked_child_has_stacks_of_its_own(gpu, torch):
    text = """
    def parent(): torch.c10.c10_cpu_alloc(2 * MIB)
    def child(): torch.c10.c10_cpu_alloc(3 * MIB)
    parent()
    if os.fork() == 0:
        child()
        os._exit(0)
    os.wait()
    parent()
    """
    blocks = Blocks(play(gpu, text, torch, "--memory-events=all"))
    found = sorted(
        (row["bytes"] >> 20, row["process"], blocks.frames(row)[0][0]) for row in blocks.rows if row["stack"]
    )
    assert [(size, name) for size, _, name in found] == [(2, "parent"), (2, "parent"), (3, "child")]
    assert found[0][1] == found[1][1] != found[2][1]


def test_a_name_that_looks_like_a_frame_is_a_name(gpu, torch):
    text = """
    import inferscope
    inferscope.mark_event("\\x1e0 1 2")
    def f(): block(0x1000, 2 * MIB, 0)
    f()
    """
    seen = play(gpu, text, torch)
    assert "0 1 2" in seen.trace.texts(3)
    assert [name for name, _ in Blocks(seen).at(0x1000)] == ["f", "<module>"]


def test_what_cannot_be_read_is_said_once(gpu, torch):
    """As where this Python is not laid out as its version says."""
    text = """
    block(0x1000, 2 * MIB, 0)
    """
    program = PRELUDE_WITH_DIFFERENCE + PROGRAM + text
    seen = gpu.play("", command=(gpu.python(program), torch), options=("--memory-events=gpu",))
    assert seen.recorded.code == 0, seen.recorded.told
    blocks = Blocks(seen)
    assert blocks.why(0x1000) == (LARGE, 5)
    assert "have no Python stacks" in seen.notes() and "the line of a frame" in seen.notes()


PRELUDE_WITH_DIFFERENCE = """
    from inferscope import _stacks
    _stacks._difference = lambda: "the line of a frame"
"""


def test_the_report_names_the_lines_that_hold_the_peak(gpu, torch):
    text = """
    def weights(): block(0x1000000, 64 * MIB, 0)
    def cache():
        for at in range(400): block(0x10000000 + at * 0x10000, 64 << 10, 0)
    weights(); cache()
    """
    seen = play(gpu, text, torch)
    analysis = json.loads(inferscope("analyze", seen.trace.folder, "--format", "json").stdout)
    holders = {one["function"]: one for one in analysis["memory"][0]["peak_by_place"]}
    assert holders["weights"]["bytes"] == 64 << 20 and holders["weights"]["error_bytes"] == 0
    cached = holders["cache"]
    assert cached["bytes"] == 400 * (64 << 10) - sum(
        one["bytes"] for name, one in holders.items() if name not in ("cache", "weights")
    )
    assert 0 < cached["error_bytes"] < cached["bytes"] / 2
