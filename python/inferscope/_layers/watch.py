# mypy: disable-error-code="import-not-found,attr-defined,no-untyped-call"
"""How the calls of modules are seen. From Python 3.12 on by `sys.monitoring` of the one function that calls modules:
neither PyTorch nor its compiler can tell, so nothing is compiled again or otherwise because of it. Before that by
PyTorch's global module hooks, which its compiler does see: there it ends when `torch._dynamo` is imported."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from typing import Any

from .._after_import import after_import

_TOOLS = (3, 4)


class Watch:
    """Tells of every call of a module while it is on, with the frames of the calls that the thread is in. Where
    `entered` returns True the call is passed over with everything in it, which costs a fraction, and at its end
    `passed` is called."""

    def __init__(
        self,
        entered: Callable[[list[Any]], bool],
        left: Callable[[list[Any]], None],
        passed: Callable[[], None],
        over: Callable[[str], None],
    ) -> None:
        import torch

        self._entered, self._left, self._passed = entered, left, passed
        # By thread: the frame of a model's call that is being passed over.
        self._passing: dict[int, int] = {}
        self._code = torch.nn.Module.__call__.__code__
        self._handles: list[Any] = []
        self._tool = self._take_tool()
        _unseen_by_the_compiler()
        if self._tool is None:
            # The compiler's guards look at the hooks: it would compile again with them, and once more without.
            after_import(
                "torch._dynamo",
                lambda: over("torch.compile is used: before Python 3.12 layers are not named beside it"),
            )

    def _take_tool(self) -> int | None:
        if sys.version_info < (3, 12):
            return None
        monitoring = sys.monitoring
        for tool in _TOOLS:
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "inferscope layers")
                monitoring.register_callback(tool, monitoring.events.PY_START, self._on_start)
                monitoring.register_callback(tool, monitoring.events.PY_RETURN, self._on_return)
                return tool
        return None

    def on(self) -> None:
        self.pass_nothing()
        if sys.version_info >= (3, 12) and self._tool is not None:
            events = sys.monitoring.events
            sys.monitoring.set_local_events(self._tool, self._code, events.PY_START | events.PY_RETURN)
        elif not self._handles:
            from torch.nn.modules import module

            self._handles = [
                module.register_module_forward_pre_hook(self._before),
                module.register_module_forward_hook(self._after),
            ]

    def off(self) -> None:
        if sys.version_info >= (3, 12) and self._tool is not None:
            sys.monitoring.set_local_events(self._tool, self._code, 0)
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        self.pass_nothing()

    def pass_nothing(self) -> None:
        """What is being passed over is of interest after all, or will never be seen to end."""
        self._passing = {}

    def _frames(self, frame: Any) -> list[Any]:
        code, found = self._code, []
        while frame is not None:
            if frame.f_code is code:
                found.append(frame)
            frame = frame.f_back
        return found

    def _nearest(self, frame: Any) -> Any:
        """The innermost call of a module: a few frames away inside one, and none at all outside."""
        code = self._code
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        return frame

    def _begins(self, frame: Any) -> None:
        frame = self._nearest(frame)
        if frame is None:
            return
        thread = get_ident()
        if thread in self._passing:
            if self._nearest(frame.f_back) is not None:
                return
            self._pass(thread)  # An exception has ended it.
        if self._entered(self._frames(frame)):
            self._passing[thread] = id(frame)

    def _ends(self, frame: Any) -> None:
        frame = self._nearest(frame)
        if frame is None:
            return
        thread = get_ident()
        passing = self._passing.get(thread)
        if passing is None:
            self._left(self._frames(frame))
        elif passing == id(frame):
            self._pass(thread)

    def _pass(self, thread: int) -> None:
        self._passing.pop(thread, None)
        self._passed()

    def _on_start(self, _code: Any, _offset: int) -> None:
        self._begins(sys._getframe(1))

    def _on_return(self, _code: Any, _offset: int, _result: Any) -> None:
        self._ends(sys._getframe(1))

    def _before(self, _module: Any, _args: Any) -> None:
        self._begins(sys._getframe(1))

    def _after(self, _module: Any, _args: Any, _result: Any) -> None:
        self._ends(sys._getframe(1))

    def follow_captures(self, begins: Callable[[], None], ends: Callable[[], None]) -> None:
        """The graph's launches will bear the names of the modules that are called while it is captured."""
        import torch

        graph = getattr(torch.cuda, "CUDAGraph", None)
        begin, end = getattr(graph, "capture_begin", None), getattr(graph, "capture_end", None)
        if graph is None or begin is None or end is None:
            return

        def capture_begin(self: Any, *args: Any, **options: Any) -> Any:
            result = begin(self, *args, **options)
            begins()
            return result

        def capture_end(self: Any, *args: Any, **options: Any) -> Any:
            ends()
            return end(self, *args, **options)

        capture_begin.__doc__, capture_end.__doc__ = begin.__doc__, end.__doc__
        graph.capture_begin, graph.capture_end = capture_begin, capture_end


def _unseen_by_the_compiler() -> None:
    """What runs inside a compiled model's call is ours and not to be compiled."""
    import torch._C._dynamo.eval_frame as compiler

    from . import calls, names, windows

    codes = []
    for module in (sys.modules[__package__], names, calls, windows, sys.modules[__name__]):
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) == module.__name__:
                for function in (thing, *(vars(thing).values() if isinstance(thing, type) else ())):
                    codes.append(getattr(function, "__code__", None))
    skip = getattr(compiler, "skip_code", None)
    if skip is None and hasattr(compiler, "set_code_exec_strategy"):
        action = compiler._FrameAction
        strategy = compiler._FrameExecStrategy(action.SKIP, action.DEFAULT)

        def skip(code: Any) -> None:
            compiler.set_code_exec_strategy(code, strategy)

    for code in codes:
        if skip is not None and code is not None:
            skip(code)
