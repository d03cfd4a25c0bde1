"""What a program can see of itself is the same plain and recorded, but for exactly what docs/internals/invisible.md
lists."""

import json
import re
import subprocess
import sys

import pytest
from recording import PATIENCE_S, environment

pytestmark = pytest.mark.every_python

# Ours, and `gc`, whose list of callbacks we are in.
OURS = {
    "gc",
    "inferscope",
    "inferscope._after_import",
    "inferscope._entries",
    "inferscope._native",
    "inferscope._program",
    "inferscope._recording",
    "inferscope._surface",
    "inferscope._torch",
}
VARIABLES = {"PYTHONPATH", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}

LOOKS = """
    import sys
    seen = {"modules": sorted(sys.modules), "meta_path": [str(finder) for finder in sys.meta_path]}
    import atexit, gc, json, os, resource, signal, threading, warnings
    seen |= {
        "gc.callbacks": [str(one) for one in gc.callbacks],
        "same": {
            "flags": str(sys.flags), "path": sys.path, "argv": sys.argv, "orig_argv": sys.orig_argv,
            "path_hooks": [str(one) for one in sys.path_hooks], "options": [sys._xoptions, sys.warnoptions],
            "descriptors": sorted(os.listdir("/proc/self/fd")), "atexit": atexit._ncallbacks(),
            "threads": [one.name for one in threading.enumerate()], "tasks": len(os.listdir("/proc/self/task")),
            "signals": [str(signal.getsignal(one)) for one in signal.valid_signals()],
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "limits": {one: resource.getrlimit(getattr(resource, one)) for one in dir(resource) if "RLIMIT" in one},
            "filters": [str(one) for one in warnings.filters], "umask": os.umask(0o77), "nice": os.nice(0),
            "warned": [name for name, one in sys.modules.items() if hasattr(one, "__warningregistry__")],
            "trace": str(sys.gettrace()), "profile": str(sys.getprofile()), "switch": sys.getswitchinterval(),
            "threshold": gc.get_threshold(), "frozen": gc.get_freeze_count(), "recursion": sys.getrecursionlimit(),
            "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__,
                      sys.unraisablehook is sys.__unraisablehook__, threading.excepthook is threading.__excepthook__],
            "tools": [sys.monitoring.get_tool(one) for one in range(6)] if hasattr(sys, "monitoring") else None,
            "folder": os.getcwd(), "sitecustomize": "sitecustomize" in sys.modules, "main": sorted(globals()),
        },
        "environment": dict(os.environ),
    }
    print(json.dumps(seen))
"""


def without_addresses(text):
    """They are other ones in every process."""
    return re.sub(rb"0x[0-9a-f]+", b"0x", text)


@pytest.fixture
def both(script, record, tmp_path):
    """Runs a script plain and recorded. Gives (stdout, stderr, code) of each."""

    def run(text, *words, options=()):
        path = script(text)
        command = [sys.executable, *words, path]
        plain = subprocess.run(
            command, capture_output=True, env=environment(), cwd=tmp_path, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
        )
        ours = record(
            *command, options=("--quiet", *options), cwd=tmp_path, stdin=subprocess.DEVNULL, env=environment()
        )
        assert ours.trace.manifest["state"] == "complete"
        return (
            (without_addresses(plain.stdout), without_addresses(plain.stderr), plain.returncode),
            (without_addresses(ours.out), without_addresses(ours.err), ours.code),
        )

    return run


@pytest.mark.parametrize("words", [(), ("-W", "error"), ("-X", "dev"), ("-O",)])
def test_a_program_sees_what_is_documented_and_nothing_else(both, words):
    plain, recorded = both(LOOKS, *words)
    assert (plain[1:], recorded[1:]) == ((b"", 0), (b"", 0))
    plain, recorded = json.loads(plain[0]), json.loads(recorded[0])
    for what, value in plain["same"].items():
        assert recorded["same"][what] == value, what
    # In the development mode of 3.10 any module that is not written in Python brings this one.
    assert set(recorded["modules"]) - set(plain["modules"]) - {"encodings.ascii"} == OURS - set(plain["modules"])
    assert set(plain["modules"]) <= set(recorded["modules"])
    (finder,) = recorded["meta_path"][: -len(plain["meta_path"])]
    assert finder.startswith("<inferscope._native.AfterImport object")
    assert recorded["meta_path"][1:] == plain["meta_path"]
    assert (plain["gc.callbacks"], recorded["gc.callbacks"]) == ([], ["<built-in function on_gc>"])
    more = {name for name, value in recorded["environment"].items() if plain["environment"].get(name) != value}
    assert {name for name in more if not name.startswith("INFERSCOPE_")} <= VARIABLES
    assert set(plain["environment"]) <= set(recorded["environment"])


FAILS = """
    import atexit, faulthandler, sys, threading, traceback, warnings
    atexit.register(print, "registered first")
    atexit.register(print, "registered last")
    warnings.warn("once")
    def deep(n):
        if n: deep(n - 1)
        raise ValueError("here")
    try: deep(3)
    except ValueError: traceback.print_exc()
    try: import no_such_module
    except ImportError: traceback.print_exc()
    thread = threading.Thread(target=deep, args=(1,), name="worker"); thread.start(); thread.join()
    class Bad:
        def __del__(self): raise RuntimeError("unraisable")
    bad = Bad.__new__(Bad); del bad
    faulthandler.dump_traceback()
    deep(2)
"""


@pytest.mark.parametrize("options", [(), ("--calls",)])
def test_tracebacks_warnings_and_the_order_at_exit_are_word_for_word_the_same(both, options):
    plain, recorded = both(FAILS, options=options)
    assert recorded[1].decode() == plain[1].decode()
    assert (recorded[0], recorded[2]) == (plain[0], plain[2]) == (b"registered last\nregistered first\n", 1)


TORCH = {
    "broken": "def load():\n    raise ImportError('libcudart is missing')\nload()\n",
    "whole": "value = 1\n",
}
IMPORTS_TORCH = """
    import sys, traceback
    events = []
    def trace(frame, event, arg):
        if "inferscope" in frame.f_code.co_filename: events.append((event, frame.f_code.co_name))
        return trace
    def profile(frame, event, arg):
        if "inferscope" in frame.f_code.co_filename or "inferscope" in str(getattr(arg, "__module__", "")):
            events.append((event, str(arg)))
    sys.settrace(trace)
    sys.setprofile(profile)
    import json.tool, xml.dom
    for name in ("no_such_module", "another"):
        try: __import__(name)
        except ImportError: pass
    # Until PyTorch is there nothing of ours that is written in Python runs.
    assert not events, events
    sys.settrace(None)
    sys.setprofile(None)
    for _ in range(2):
        try: import torch
        except ImportError: traceback.print_exc(file=sys.stdout)
    print(torch.value if "torch" in sys.modules else "no torch")
"""


@pytest.mark.parametrize("kind", TORCH)
def test_an_import_shows_no_frame_of_ours_to_tracebacks_and_tracers(both, tmp_path, kind):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH[kind], encoding="utf-8")
    plain, recorded = both(IMPORTS_TORCH)
    assert plain[2] == 0, plain[1].decode()
    assert recorded == plain
    assert (b"libcudart is missing" in plain[0]) == (kind == "broken")


def test_a_child_that_is_forked_under_a_tracer_shows_no_function_of_ours(both):
    plain, recorded = both("""
        import os, sys
        def trace(frame, event, arg):
            print(os.path.basename(frame.f_code.co_filename), frame.f_code.co_name, flush=True)
        import threading
        sys.settrace(trace)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    """)
    assert recorded == plain
