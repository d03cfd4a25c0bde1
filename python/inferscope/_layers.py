"""Which `nn.Module` is at work, for a few calls of a model: its ranges name the kernels launched meanwhile, and the
analysis recognises the same kernels in all other calls. How modules are called is in `_layer_names`, how we look in
`_layer_watch`.

A look begins when PyTorch is imported and ends with the fourth call of a model; it comes back for one call after 1,
2, 4, ... at last 60 seconds, and while a CUDA graph is captured. In between nothing of ours is in the way of a call."""

from __future__ import annotations

import _thread
import os
import sys
import weakref
from typing import Any

from . import _native
from ._layer_names import Names, is_compiled, original
from ._layer_watch import Watch

# Calls of a model until its kernels are known; the first may be unlike the others (kernels are loaded and tried out).
_CALLS = 4
# A look does not go on for ever where every call is of a new model (DataParallel makes copies).
_MOST_CALLS = 64
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
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
    """The ranges of one thread, outermost first, and when anything was last seen of it."""

    __slots__ = ("last", "ranges")

    def __init__(self) -> None:
        self.ranges: list[_Range] = []
        self.last = 0

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
    threads: dict[int, _Thread] = {}  # noqa: RUF012
    seen: dict[int, tuple[weakref.ref[Any], int]] = {}  # noqa: RUF012
    watch: Watch | None = None
    looking = False
    calls = 0
    captures = 0
    errors = 0
    timer = False
    over = False


def begin() -> None:
    """Begins to look, or to look again in a new recording. PyTorch is imported."""
    state = _State
    if state.watch is None:
        state.watch = Watch(_entered, _left, _stop_for_good)
        os.register_at_fork(after_in_child=_forked)
        state.watch.follow_captures(_capture_begins, _capture_ends)
    if not state.over:
        _native.layers_state(True, "")
    _look()


def _look() -> None:
    state = _State
    if state.over or state.looking or state.watch is None or not _native.is_recording():
        return
    state.calls = 0
    state.looking = True
    state.watch.on()


def _rest() -> None:
    """The look is over: nothing of ours is left in the way."""
    state = _State
    state.looking = False
    if state.watch is not None:
        state.watch.off()
    for thread in list(state.threads.values()):
        # In the middle of a call, or left by an exception: known until something was last seen of it.
        thread.close(0, thread.last)
    if len(state.threads) > _MOST_CALLS:
        state.threads = {}
    state.names.forget()
    state.seen = {number: known for number, known in state.seen.items() if known[0]() is not None}
    if not state.timer and not state.over:
        state.timer = True
        _thread.start_new_thread(_look_again, ())


def _look_again() -> None:
    # No thread of `threading`: the program's own count of threads stays as it is.
    pause, never = _FIRST_PAUSE_S, _thread.allocate_lock()
    never.acquire()
    while not _State.over and not sys.is_finalizing():
        never.acquire(timeout=pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)
        _guarded(_look)


def _stop_for_good(reason: str) -> None:
    _State.over = True
    _rest()
    _native.layers_state(False, reason)


def _guarded(work: Any, *arguments: Any) -> None:
    try:
        work(*arguments)
    except Exception as error:
        _State.errors += 1
        if _State.errors == _MOST_ERRORS:
            _stop_for_good(f"layers are no longer named: {error!r}")


def _forked() -> None:
    state = _State
    state.threads, state.timer = {}, False
    if not state.over:
        _native.layers_state(True, "")
        _guarded(_look)


def _capture_begins() -> None:
    _State.captures += 1
    _guarded(_look)


def _capture_ends() -> None:
    _State.captures -= 1
    if _State.captures <= 0 and _State.looking:
        _State.captures = 0
        _guarded(_rest)


def _entered(frames: list[Any]) -> None:
    """A module is called. `frames` are the calls of modules that this thread is in, innermost first."""
    _guarded(_open, frames)


def _open(frames: list[Any]) -> None:
    state = _State
    if not state.looking:
        return
    thread = state.threads.setdefault(_thread.get_ident(), _Thread())
    outer = frames[:0:-1]
    same = 0
    for known, frame in zip(thread.ranges, outer, strict=False):
        if known.frame != id(frame):
            break
        same += 1
    # What is not on the stack any more was left by an exception.
    thread.close(same, thread.last)
    if same < len(outer) and not state.captures:
        return  # The look began in the middle of this model's call. It waits for a whole one.
    for frame in (*outer[same:], frames[0]):
        _add(thread, frame)


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
        _called(module)


def _called(root: Any) -> None:
    """A whole call of a model was seen."""
    state = _State
    known = state.seen.get(id(root))
    count = known[1] + 1 if known is not None and known[0]() is root else 1
    if root is not None:
        state.seen[id(root)] = (weakref.ref(root), count)
    state.calls += 1
    if (count >= _CALLS or state.calls >= _MOST_CALLS) and not state.captures:
        _rest()
