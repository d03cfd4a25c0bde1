# mypy: disable-error-code="import-not-found,attr-defined,no-untyped-call"
"""Which operators PyTorch runs, on what shapes and on whose results, in a few steps: a *look* is two turns of the
loop, each from one begin of a step or entry to the next of the same name. How an operator becomes a record is in
`look`, which values are the same in `values`, when a look would disturb the program in `safety`, and what tells of
begins in `trigger`.

The first look comes when the name that the loop's turn begins with (`rhythm`) has begun four times, the next ones after
1, 2, 4, ... at last 60 seconds, and never sooner than a hundred times what the last one cost: all looks together stay
below a hundredth of the program's time."""

from __future__ import annotations

import os
from _thread import get_ident
from time import monotonic
from typing import Any

from .. import _native
from . import safety, thread_end, trigger
from .look import Look
from .modules import Modules
from .rhythm import Rhythm

_TURNS = 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
# A look that costs so much is followed by a pause of a hundred times that.
_COST_TO_PAUSE = 100


class _State:
    """What this process has going on."""

    begun = False
    over = False
    look: Look | None = None
    # The turns that the look has begun, on which thread, of which name.
    turns = 0
    thread = 0
    name = ""
    # It was begun inside `torch.inference_mode`.
    inside = False
    # Modes of ours that cannot be taken away just now, with their thread, name and `inside`: they do nothing.
    left: list[tuple[int, Any, str, bool]] = []  # noqa: RUF012
    rhythm = Rhythm()
    # The same paths in every look.
    modules: Modules | None = None
    due = 0.0
    pause = _FIRST_PAUSE_S
    looks = 0
    why_not = ""


def begin() -> None:
    """Waits for begins, or again in a new recording. PyTorch is imported."""
    state = _State
    if not safety.possible():
        _native.ops_state("failed", "this PyTorch is too old: its dispatch modes reject higher-order operators")
        return
    if not state.begun:
        state.begun = True
        os.register_at_fork(after_in_child=_forked)
    state.rhythm, state.pause, state.due = Rhythm(), _FIRST_PAUSE_S, 0.0
    if not state.over:
        _native.ops_state("on", "no step or model call was seen often enough for a look")
        trigger.listen(_begins, 0.0)


def _forked() -> None:
    """The mode of a look lies on the thread that forked, which is the child's only one."""
    state = _State
    if state.look is not None:
        _end()
    state.rhythm, state.pause, state.due = Rhythm(), _FIRST_PAUSE_S, 0.0
    if not state.over:
        trigger.listen(_begins, 0.0)


def _begins(name: str, is_step: bool) -> None:
    """A step or an entry of this name begins on this thread."""
    state = _State
    try:
        if state.left:
            _take_away(name)
        if state.look is not None:
            # One that has seen all it may ends at the next begin, whatever the name: its own may never come again.
            if state.thread == get_ident() and (state.name == name or not state.look.on):
                _next_turn(name)
            return
        if state.over or monotonic() < state.due or trigger.is_part(is_step):
            return
        if state.rhythm.is_turn(get_ident(), is_step, name):
            _start(name)
    except Exception as error:
        _stop_for_good(error)


def _start(name: str) -> None:
    state = _State
    reason = safety.why_not()
    if reason is not None:
        if reason != state.why_not:
            state.why_not = reason
            if state.looks == 0:
                _native.ops_state("failed", reason)
        _rest(0.0)
        return
    if state.modules is None:
        state.modules = Modules()
    look = Look(state.looks, _stop_for_good, state.modules)
    look.try_out()
    state.look, state.turns, state.thread, state.name = look, 1, get_ident(), name
    state.inside = safety.is_inference()
    thread_end.call(_thread_ends)
    safety.push(look.mode)
    look.on = True


def _next_turn(name: str) -> None:
    state = _State
    look = state.look
    if look is None:
        return
    if state.turns < _TURNS and look.on and safety.why_not(look.mode) is None:
        state.turns += 1
        look.turn += 1
        return
    cost = look.cost_s()
    if look.seen:
        state.looks += 1
        _native.ops_state("on", "")
    _end(name)
    _rest(cost)


def _end(name: str = "", thread_ends: bool = False) -> None:
    """The look is over."""
    state = _State
    look, state.look = state.look, None
    if look is not None:
        look.end()
        state.left.append((state.thread, look.mode, state.name, state.inside))
        _take_away(name, thread_ends)


def _thread_ends(thread: int) -> None:
    """What is ours must not stay on the stack of a thread that ends: PyTorch would free it after Python has forgotten
    the thread, and that aborts the process where Python is about to end as well."""
    state = _State
    if state.look is not None and state.thread == thread:
        cost = state.look.cost_s()
        _end("", True)
        _rest(cost)
    elif thread == get_ident():
        _take_away("", True)
    state.left = [one for one in state.left if one[0] != thread]


def _take_away(name: str, thread_ends: bool = False) -> None:
    """Takes what is ours from the stack of this thread, where it is on top.

    Whoever leaves `torch.inference_mode` gets the dispatch keys back that were set when it was entered: what was begun
    outside and taken away inside would leave a key without a mode, and the program's next operator would fail. So
    inside it only what the same begin has put there goes."""
    here = get_ident()
    for one in list(_State.left):
        thread, mode, its_name, inside = one
        may = thread_ends or not safety.is_inference() or (inside and name == its_name)
        if thread == here and may and safety.pop(mode):
            _State.left.remove(one)
            # It and its native method hold each other.
            mode.__dict__.clear()


def _rest(cost_s: float) -> None:
    state = _State
    if state.over:
        return
    wait = max(state.pause, _COST_TO_PAUSE * cost_s)
    state.pause = min(state.pause * 2, _LONGEST_PAUSE_S)
    state.due = monotonic() + wait
    # What another mode lies on is taken away as soon as it can be.
    trigger.listen(_begins, 0.0 if state.left else wait)


def _stop_for_good(error: BaseException) -> None:
    """An error of ours: there are no more looks."""
    state = _State
    state.over = True
    _native.ops_state("failed", f"operators are no longer recorded: {error!r}")
    try:
        _end()
    except Exception:
        if state.look is not None:
            state.look.on = False
    if not state.left:
        trigger.listen(None, 0.0)
