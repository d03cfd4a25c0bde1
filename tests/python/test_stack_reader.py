"""Frames that are read without the GIL are those that the interpreter has: by the functions that the CUDA library
calls, here called through ctypes, which lets go of the GIL meanwhile. Each CPython runs this on itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading

import pytest
from conftest import PACKAGE, clean_environment
from inferscope import _native, _stacks

HELPERS = '''
import ctypes, sys
from inferscope import _native

class RawFrame(ctypes.Structure):
    _fields_ = [("code", ctypes.c_size_t), ("identity", ctypes.c_uint64), ("instruction", ctypes.c_int32)]

class Reader(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("read", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(RawFrame), ctypes.c_size_t)),
        ("describe", ctypes.CFUNCTYPE(
            ctypes.c_size_t, ctypes.POINTER(RawFrame), ctypes.c_char_p, ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_uint32))),
        ("end", ctypes.CFUNCTYPE(None)),
    ]

library = ctypes.CDLL(_native.__file__)
library.inferscope_stack_reader.restype = ctypes.POINTER(Reader)
reader = library.inferscope_stack_reader().contents
assert reader.version == 1

def stack(room=64):
    """(function, file, line of its begin, line) of each frame from the caller's on; below 0: why there are none."""
    frames, text, line = (RawFrame * room)(), ctypes.create_string_buffer(4096), ctypes.c_uint32()
    count = reader.read(frames, room)
    if count <= 0:
        return count
    found = []
    for frame in frames[1:count]:
        size = reader.describe(ctypes.byref(frame), text, 4096, ctypes.byref(line))
        name, file, first = text.raw[:size].decode().split("\\x1f")
        found.append((name, file, int(first), line.value))
    reader.end()
    return found

def told(depth=62):
    """The same, as the interpreter says it."""
    frame, found = sys._getframe(1), []
    while frame is not None and len(found) < depth:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        found.append((name, code.co_filename, code.co_firstlineno, frame.f_lineno or 0))
        frame = frame.f_back
    return found
'''
exec(HELPERS)
stack, told = globals()["stack"], globals()["told"]


def same(pair):
    read, said = pair
    assert isinstance(read, list), f"not read: {read}"
    assert read[: len(said)] == said[: len(read)] and abs(len(read) - len(said)) <= 1
    return read


@pytest.fixture(autouse=True, scope="module")
def _on():
    _stacks.begin()


def run(text: str, *options: str, code: int = 0) -> str:
    """In a process of its own."""
    program = HELPERS + textwrap.dedent(text)
    environ = clean_environment() | {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, *options, "-c", program]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_this_python_is_known_and_every_kind_of_frame_is_as_it_says():
    assert _stacks._difference() is None


@pytest.mark.parametrize("minor", [minor for minor in range(9, 15) if minor != sys.version_info[1]])
def test_a_python_that_is_laid_out_otherwise_is_noticed(minor):
    found = _native.stacks_check(minor)
    assert found is not None, f"read as 3.{minor}"


def test_frames_are_those_of_the_interpreter():
    def inner():
        return (stack(), told())

    read = same(inner())
    assert read[0][0].endswith("inner") and read[0][1] == __file__
    [pair] = [(stack(), told()) for _ in range(1)]
    assert same(pair)
    assert same(max([1], key=lambda _: 1) and (stack(), told()))


def test_generators_and_coroutines():
    def generate():
        yield (stack(), told())
        yield from ((stack(), told()) for _ in range(2))

    async def wait():
        await asyncio.sleep(0)
        return [(stack(), told()), *[(stack(), told()) async for _ in times()]]

    async def times():
        for _ in range(2):
            await asyncio.sleep(0)
            yield None

    for pair in [*generate(), *asyncio.run(wait())]:
        same(pair)


def test_names_and_files_of_every_width():
    for name in ("plain", "m\xe9moire", "\u8bb0\u5fc6", "\U000102a0", "a" * 3000):
        names = {"stack": stack, "told": told}
        exec(compile(f"\n\ndef {name}():\n  return (stack(),\n    told())", f"/{name[:1000]}.py", "exec"), names)
        (function, file, first, line), *_ = same_cut(names[name]())
        assert (function[:1000], first, line) == (name[:1000], 3, 4)
        assert file == f"/{name[:1000]}.py"


def same_cut(pair):
    """Of long names, what both have: 1024 bytes are kept."""
    read, said = pair
    cut = [(name[:1000], file, first) for name, file, first, _ in said]
    assert [(name[:1000], file, first) for name, file, first, _ in read[: len(cut)]] == cut[: len(read)]
    return read


def test_lines_far_apart_before_the_first_and_without_any():
    names = {"stack": stack, "told": told}
    far = "def far(x):\n  if x:" + "\n" * 70_000 + "    return (stack(),\n       told())"
    exec(compile(far, "<far>", "exec"), names)
    read, said = names["far"](1)
    assert read[0][3] == 70_002 and said[0][3] == 70_003
    many = "def many():\n" + "".join(f"  a{at} = {at}\n" for at in range(5000)) + "  return (stack(), told())"
    exec(compile(many, "<many>", "exec"), names)
    assert same(names["many"]())[0][3] == 5002


def test_recursion_is_cut_where_it_is_too_deep():
    def deep(more):
        return deep(more - 1) if more else (stack(), told())

    read, said = deep(300)
    assert len(read) == 63 and read[:62] == said


@pytest.mark.parametrize("hook", ["settrace", "setprofile"])
def test_under_a_tracer(hook):
    before = getattr(sys, hook.replace("set", "get"))()
    getattr(sys, hook)(lambda *_: None)
    try:
        pair = (stack(), told())
    finally:
        getattr(sys, hook)(before)
    same(pair)


def test_threads_at_once_while_code_comes_and_goes():
    wrong, end = [], threading.Event()

    def churn():
        at = 0
        while not end.is_set():
            at += 1
            exec(compile(f"def f{at}(): return {at}\nf{at}()", f"<{at % 7}>", "exec"), {})

    def read(number):
        def inner():
            return (stack(), told())

        for _ in range(1500):
            one, other = inner()
            if isinstance(one, int) or one[:3] != other[:3]:
                wrong.append((number, one, other))

    others = [threading.Thread(target=churn, daemon=True) for _ in range(2)]
    readers = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    [thread.start() for thread in (*others, *readers)]
    [thread.join() for thread in readers]
    end.set()
    [thread.join() for thread in others]
    assert wrong == []


def test_what_says_the_same_has_one_identity_wherever_it_lies():
    found = run("""
        from inferscope import _stacks
        _stacks.begin()
        def made(text, room=64):
            names = {"reader": reader, "frames": (RawFrame * room)()}
            exec(compile(text, "<made>", "exec"), names)
            count = names["f"]()
            reader.end()
            # Innermost is the function that was made.
            return (names["frames"][0].identity, names["frames"][0].code)
        one = "def f(): return reader.read(frames, 64)"
        pairs = [made(one) for _ in range(50)]
        print(len({identity for identity, _ in pairs}))
        others = [made(text) for text in (
            one, "\\n" + one, one.replace("f()", "g()") + "\\nf = g", one.replace(": return", ":\\n return"),
            one.replace("frames, 64", "frames,\\n 64"))]
        print(len({identity for identity, _ in others}))
    """)
    assert found.split() == ["1", "5"]


def test_nothing_is_read_before_the_check_and_after_the_end():
    found = run("""
        print(stack())
        from inferscope import _stacks
        _stacks.begin()
        print(isinstance(stack(), list))
        import atexit
        # Those that were registered before ours run after it.
        _native.stacks_end()
        print(stack())
        _stacks.begin()
        print(stack())
    """)
    assert found.split() == ["-5", "True", "-2", "-2"]


def test_a_difference_leaves_it_off():
    found = run("""
        from inferscope import _stacks
        _stacks._deep = lambda: "text"
        _stacks.begin()
        print(stack())
        def fails(): raise RuntimeError
        _stacks._deep = fails
        _stacks.begin()
        print(stack())
    """)
    assert found.split() == ["-5", "-5"]


def test_the_end_waits_for_readings_and_not_for_ever():
    found = run("""
        import threading, time
        from inferscope import _stacks
        _stacks.begin()
        def begin():
            frames = (RawFrame * 8)()
            assert reader.read(frames, 8) > 0
        begin()
        threading.Timer(0.2, reader.end).start()
        since = time.monotonic()
        _native.stacks_end()
        print(0.1 < time.monotonic() - since < 60)
    """)
    # A Timer needs the GIL, which `stacks_end` holds: it gives up after a second.
    assert found.split() == ["True"]


def test_a_child_does_not_wait_for_its_parents_readings():
    found = run("""
        import os, time
        from inferscope import _stacks
        _stacks.begin()
        frames = (RawFrame * 8)()
        assert reader.read(frames, 8) > 0
        if os.fork() == 0:
            since = time.monotonic()
            _native.stacks_end()
            os._exit(0 if time.monotonic() - since < 0.9 else 1)
        print(os.wait()[1])
        reader.end()
    """)
    assert found.split() == ["0"]


def test_an_interpreter_that_ends_under_reading_threads():
    """Their states are freed while they are in C."""
    for _ in range(5):
        run("""
            import threading
            from inferscope import _stacks
            _stacks.begin()
            frames = [(RawFrame * 64)() for _ in range(4)]
            def forever(own):
                while True:
                    if reader.read(own, 64) > 0: reader.end()
            for own in frames: threading.Thread(target=forever, args=(own,), daemon=True).start()
        """)
