"""`INFERSCOPE_LAYERS=1` on every Python, with a stand-in for PyTorch: when modules are looked at and when not, what is
left in the way, and that nothing happens to programs that do not use PyTorch."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest
from conftest import PACKAGE
from layer_ranges import CALL, MODEL, PATH, layers, names

__all__ = ["layers"]


def test_four_calls_are_looked_at_and_then_nothing_is_left(layers):
    """Another model is waited for until this one was called 32 times more; those calls are passed over."""
    segment = layers("""
        assert watched()
        for number in range(50):
            assert model(number) == number + 3
            assert watched() == (number < 35), number
    """)
    assert names(segment) == 4 * CALL
    assert segment.status["layers"].state == "on"


def test_it_comes_back_for_one_call(layers):
    segment = layers(
        """
        import time
        for number in range(36):
            model(number)
        deadline = time.monotonic() + 60
        while not watched():
            assert time.monotonic() < deadline, "nobody looked again"
            time.sleep(0.001)
        for number in range(3):
            model(number)
        """,
        before="import inferscope._layers as layers\nlayers._FIRST_PAUSE_S, layers._LONGEST_PAUSE_S = 0.01, 3600\n",
    )
    assert names(segment) == 5 * CALL


def test_a_graph_is_looked_at_while_it_is_captured(layers):
    segment = layers("""
        for number in range(36):
            model(number)
        graph = torch.cuda.CUDAGraph()
        assert graph.capture_begin(pool=7) == 7
        model(1)
        graph.capture_end()
        assert not watched()

        class Captures(Model):
            def forward(self, x):
                graph.capture_begin()
                x = self.b(self.a(x))
                graph.capture_end()
                return x

        Captures(a=Leaf(), b=Leaf())(1)
    """)
    # The capture began in the middle of a call: the model is known from there on.
    assert names(segment) == [*4 * CALL, *CALL, "Captures", "Captures.a", "Captures.b"]


def test_no_thread_of_ours_outlives_the_program(layers):
    """CPython 3.10 crashes where one is just being born, or waits for the interpreter's lock, when it ends."""
    layers(
        """
        for number in range(36):
            model(number)
        assert not watched()
        assert tasks() == begun + 1, "the thread that looks again"
        """,
        before="""
        import atexit, os

        def tasks():
            return len(os.listdir("/proc/self/task"))

        def left():
            # A thread is gone from the interpreter a little before the kernel knows.
            import time
            deadline = time.monotonic() + 60
            while tasks() > begun:
                assert time.monotonic() < deadline, "a thread is left"
                time.sleep(0.001)

        # Handlers run in turn, the last first: this one after ours.
        atexit.register(left)
        begun = tasks()
        """,
    )


def test_an_exception_ends_the_ranges_that_it_leaves(layers):
    segment = layers("""
        class Fails(Model):
            def forward(self, x):
                self.a(x)
                raise ValueError(x)

        class Survives(Model):
            def forward(self, x):
                try:
                    self.a(x)
                except ValueError:
                    pass
                return self.b(x)

        Survives(a=Fails(a=Leaf()), b=Leaf())(1)
    """)
    assert names(segment) == ["Survives", "a", "a.a", "b"]
    begun = {event.name: event for event in segment.of("layer-begin")}
    assert begun["b"].parent == begun["Survives"].id


def test_a_forked_child_is_looked_at_too(record):
    done = record(
        MODEL
        + textwrap.dedent("""
            import os
            model(1)
            child = os.fork()
            model(2)
            if child:
                os.waitpid(child, 0)
        """),
        PYTHONPATH=PATH,
        INFERSCOPE_LAYERS="1",
        PYTHONWARNINGS="ignore",
    )
    assert (done.code, done.err) == (0, "")
    assert sorted(len(names(segments[0])) for segments in done.segments.values()) == [len(CALL), 2 * len(CALL)]


def test_what_torch_compile_made_has_one_range(layers):
    segment = layers("""
        OptimizedModule = type("OptimizedModule", (torch.nn.Module,), {
            "__module__": "torch._dynamo.eval_frame", "forward": lambda self, x: self._orig_mod(x)})
        fast = OptimizedModule(_orig_mod=Leaf())
        fast(1)
        alone = Leaf()
        alone._compiled_call_impl = lambda x: x
        if sys.version_info >= (3, 12):  # Before that nobody sees it.
            alone(1)
    """)
    expected = ["Leaf (compiled)", "Leaf-2 (compiled)"]
    assert names(segment) == expected[: 1 + (sys.version_info >= (3, 12))]


def test_with_hooks_the_compiler_goes_first(layers):
    taken = """
        import sys
        if sys.version_info >= (3, 12):  # Others have what we would take: it is done with PyTorch's hooks.
            for tool in (3, 4):
                sys.monitoring.use_tool_id(tool, "somebody")
    """
    segment = layers(
        """
        model(1)
        assert hooks._global_forward_hooks
        import torch._dynamo
        assert not watched()
        model(2)
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        model(3)
        graph.capture_end()
        """,
        before=taken,
    )
    assert names(segment) == CALL
    assert segment.status["layers"].state == "failed"
    assert "torch.compile" in segment.status["layers"].message


@pytest.mark.parametrize("value", ["", "0", "off"])
def test_off_is_off(layers, value):
    segment = layers(
        """
        assert not watched()
        model(1)
        assert "inferscope._layers" not in sys.modules
        """,
        INFERSCOPE_LAYERS=value,
    )
    assert names(segment) == []


def test_a_program_without_pytorch_is_left_alone(record):
    done = record(
        """
        import sys
        import json, decimal, email
        assert not any(name.startswith(("torch", "inferscope._layer")) for name in sys.modules)
        """,
        INFERSCOPE_LAYERS="1",
    )
    assert done.only.of("layer-begin") == []


def test_a_pytorch_that_cannot_be_imported_says_so_itself(record, tmp_path):
    (tmp_path / "broken" / "torch").mkdir(parents=True)
    (tmp_path / "broken" / "torch" / "__init__.py").write_text("raise ImportError('libcudart is missing')\n")
    done = record(
        """
        for _ in range(2):
            try:
                import torch
            except ImportError as error:
                print(error)
        """,
        PYTHONPATH=os.pathsep.join([str(PACKAGE / "_inject"), str(tmp_path / "broken")]),
        INFERSCOPE_LAYERS="1",
    )
    assert (done.code, done.out, done.err) == (0, 2 * "libcudart is missing\n", "")


def test_the_import_leaves_loader_and_spec_as_they_are(layers):
    layers("""
        import importlib.machinery, inspect
        assert type(torch.__spec__.loader) is importlib.machinery.SourceFileLoader
        assert "exec_module" not in vars(torch.__spec__.loader)
        assert "As much of PyTorch" in inspect.getsource(torch)
        assert not any("torch" in getattr(finder, "names", ()) for finder in sys.meta_path), sys.meta_path
    """)


@pytest.mark.parametrize("kind", ["CPU", "CUDA"])
def test_torchs_profiler_gets_cupti_when_it_asks(record, kind):
    done = record(
        f"""
        import types
        import inferscope._native as native
        told = []
        native.gpu_release = lambda who: told.append((who, list(profiler.asked)))
        import torch
        from torch.autograd import profiler
        assert profiler._prepare_profiler("config", [types.SimpleNamespace(name={kind!r})]) == "config"
        print(told, profiler.asked)
        """,
        PYTHONPATH=PATH,
    )
    assert (done.code, done.err) == (0, "")
    # Ours lets go before theirs asks.
    assert done.out == ("[('torch.profiler', [])] ['config']\n" if kind == "CUDA" else "[] ['config']\n")
