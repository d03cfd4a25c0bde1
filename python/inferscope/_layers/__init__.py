"""Which `nn.Module` is at work, for a few calls of each model: its ranges name the kernels launched in them, and the
analysis recognises the same kernels in all other calls. How modules are called is in `names`, how we look in
`watch`, whose calls are worth it in `calls`.

A look begins when PyTorch is imported and ends when four calls of every model were seen and then none of another; it
comes back for one call of each after 1, 2, 4, ... at last 60 seconds, and while a CUDA graph is captured. While the
GPU is not recorded (`windows`) it waits. In between nothing of ours is in the way of a call."""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import weakref
from time import monotonic
from typing import Any

from .. import _native
from .calls import Calls
from .names import Names, is_compiled, original
from .thread import QuietThread
from .watch import Watch
from .windows import RecordingWindows

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
# A look that begins in the middle of a model's call waits for its end, but not through more calls of modules than this.
_MOST_WAITED = 10_000
# Threads are forgotten after a look if they are more: most are gone.
_MOST_THREADS = 64
# So many failures of ours end it.
_MOST_ERRORS = 8


class _Range:
    """A module that is being called. Without `open` it has no range of its own."""

    __slots__ = ("frame", "module", "name", "open", "path")

    def __init__(self, frame: int, module: Any, path: str) -> None:
        self.frame = frame
        self.module = weakref.ref(module)
        self.path = path
        self.name = f"{path} (compiled)" if is_compiled(module) else path
        self.open: tuple[int, int, int] | None = None


class _Thread:
    """The ranges of one thread, outermost first, when anything was last seen of it, and in which window of the GPU's
    recording its outermost call began."""

    __slots__ = ("last", "ranges", "window")

    def __init__(self) -> None:
        self.ranges: list[_Range] = []
        self.last = 0
        self.window = 0

    def close(self, keep: int, at: int | None) -> None:
        # Popping is one step that no other thread can divide: every range ends once.
        ranges = self.ranges
        while len(ranges) > keep:
            try:
                last = ranges.pop()
            except IndexError:
                return
            if last.open is not None:
                self.last = max(self.last, _native.layer_end(last.name, last.open, at))


class _State:
    """What this process has going on."""

    names = Names()
    calls = Calls()
    windows = RecordingWindows()
    threads: dict[int, _Thread] = {}  # noqa: RUF012
    watch: Watch | None = None
    looking = False
    # The look was begun for a capture, and ends with it.
    borrowed = False
    # The GPU's window closed before the look had seen enough: it goes on in the next.
    cut = False
    # Whether the GPU has been recorded in this process.
    gpu = False
    waited = 0
    captures = 0
    errors = 0
    over = False
    # When the next look is due, and how long the pause after it will be.
    due = 0.0
    pause = 0.0
    # Held, but for a moment when there is something new for the thread that looks again. None: there is no such thread.
    news: Any = None


def begin() -> None:
    """Begins to look, or to look again in a new recording. PyTorch is imported."""
    state = _State
    if state.watch is None:
        state.watch = Watch(_entered, _left, _passed, _stop_for_good)
        os.register_at_fork(after_in_child=_forked)
        state.watch.follow_captures(_capture_begins, _capture_ends)
    if not state.over:
        _native.layers_state(True, "")
    _begin_anew()
    _look()


def _begin_anew() -> None:
    state = _State
    state.pause, state.cut, state.gpu = _FIRST_PAUSE_S, False, False
    state.calls.forget()


def _look() -> None:
    state = _State
    if state.over or state.looking or state.watch is None or not _native.is_recording():
        return
    if not state.cut:
        state.calls.look()
    state.waited = 0
    state.looking = True
    state.watch.on()


def _pause(cut: bool = False) -> None:
    """The look is over, or goes on in the next window."""
    state = _State
    state.cut = cut
    state.due = monotonic()
    if not cut:
        state.due += state.pause
        state.pause = min(state.pause * 2, _LONGEST_PAUSE_S)
    _rest()
    if state.news is None and not state.over:
        news = state.news = _thread.allocate_lock()
        news.acquire()
        QuietThread(lambda: _look_again(news), _stop_looking)


def _rest() -> None:
    """Nothing of ours is left in the way."""
    state = _State
    state.looking = False
    if state.watch is not None:
        state.watch.off()
    for thread in list(state.threads.values()):
        # In the middle of a call, or left by an exception: known until something was last seen of it.
        thread.close(0, thread.last)
    if len(state.threads) > _MOST_THREADS:
        state.threads = {}
    state.names.forget()
    if state.news is not None:
        with contextlib.suppress(RuntimeError):  # It is told already.
            state.news.release()


def _stop_looking() -> None:
    """The program ends."""
    _State.over = True
    _rest()


def _look_again(news: Any) -> None:
    state = _State
    while not state.over and not sys.is_finalizing():
        left = -1.0 if state.looking else max(state.due - monotonic(), 0.0)
        if left:
            news.acquire(timeout=left)
            continue
        _guarded(state.windows.wait_open, lambda: state.over)
        if state.over:
            return
        if _native.is_recording():
            _guarded(_look)
        else:
            state.due = monotonic() + _LONGEST_PAUSE_S


def _stop_for_good(reason: str) -> None:
    _State.over = True
    _rest()
    _native.layers_state(False, reason)


def _guarded(work: Any, *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except Exception as error:
        _State.errors += 1
        if _State.errors == _MOST_ERRORS:
            _stop_for_good(f"layers are no longer named: {error!r}")
        return None


def _forked() -> None:
    state = _State
    state.threads, state.news = {}, None
    _begin_anew()
    if state.watch is not None:
        state.watch.pass_nothing()
    if not state.over:
        _native.layers_state(True, "")
        _guarded(_look)


def _capture_begins() -> None:
    state = _State
    state.captures += 1
    if state.looking and state.watch is not None:
        state.watch.pass_nothing()
    elif not state.looking:
        state.borrowed = True
        _guarded(_look)


def _capture_ends() -> None:
    state = _State
    state.captures = max(state.captures - 1, 0)
    if state.captures == 0 and state.looking and state.borrowed:
        _guarded(_rest)
    if state.captures == 0:
        state.borrowed = False


def _entered(frames: list[Any]) -> bool:
    """A module is called. `frames` are the calls of modules that this thread is in, innermost first. True: the call is
    to be passed over."""
    return _guarded(_open, frames) is True


def _open(frames: list[Any]) -> bool:
    state = _State
    if not state.looking:
        return False
    thread = state.threads.setdefault(_thread.get_ident(), _Thread())
    outer = frames[:0:-1]
    same = 0
    for known, frame in zip(thread.ranges, outer, strict=False):
        if known.frame != id(frame):
            break
        same += 1
    # What is not on the stack any more was left by an exception.
    left = thread.ranges[0] if thread.ranges and same == 0 else None
    thread.close(same, thread.last)
    if left is not None:
        _called(left.module(), thread.window)
    if not state.captures:
        if same < len(outer):
            # The look began in the middle of this model's call. It waits for a whole one.
            state.waited += 1
            if state.waited > _MOST_WAITED and state.looking:
                _pause()
            return False
        if not outer and not _is_worth_it(thread, frames[0].f_locals["self"]):
            return state.looking
    for frame in (*outer[same:], frames[0]):
        _add(thread, frame)
    return False


def _is_worth_it(thread: _Thread, root: Any) -> bool:
    """Whether to look at this call of a model."""
    state = _State
    window = thread.window = state.windows.now()
    if state.looking and window % 2:
        _pause(cut=True)
    if window and not state.gpu:
        # Calls that were seen before have no kernels in the recording.
        state.gpu = True
        state.calls.forget()
    return state.looking and state.calls.wanted(root)


def _add(thread: _Thread, frame: Any) -> None:
    module = frame.f_locals["self"]
    around = thread.ranges[-1] if thread.ranges else None
    entry = _Range(id(frame), module, _State.names.name(module, around.path if around else None))
    # What torch.compile made calls what it was made of: one range is enough.
    if around is None or original(around.module()) is not module:
        parent = next((outer.open[0] for outer in reversed(thread.ranges) if outer.open is not None), 0)
        entry.open = _native.layer_begin(entry.name, parent)
        if entry.open is not None:
            thread.last = entry.open[1]
    thread.ranges.append(entry)


def _left(frames: list[Any]) -> None:
    """A module's call, the first of `frames`, is about to end."""
    _guarded(_close, frames)


def _close(frames: list[Any]) -> None:
    state = _State
    thread = state.threads.get(_thread.get_ident())
    if thread is None:
        return
    place = len(frames) - 1
    ranges = thread.ranges
    if place >= len(ranges) or ranges[place].frame != id(frames[0]):
        return
    module = ranges[place].module()
    thread.close(place + 1, thread.last)
    thread.close(place, None)
    if place == 0 and state.looking:
        _called(module, thread.window)


def _called(root: Any, window: int) -> None:
    """A call of a model was seen, which began in that window."""
    state = _State
    state.calls.seen(root, whole=state.windows.now() == window)
    _after_call()


def _passed() -> None:
    """A call of a model was passed over."""
    _State.calls.passed()
    _guarded(_after_call)


def _after_call() -> None:
    state = _State
    if state.captures or not state.looking:
        return
    if state.windows.now() % 2:
        _pause(cut=True)
    elif state.calls.enough():
        _pause()
