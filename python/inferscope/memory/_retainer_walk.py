"""Goes from the largest tensors up to what keeps them: over all objects that the garbage collector knows, once for each
level, within a limit of time. It only looks: nothing of the program is called, changed or collected."""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import sys
import time
import types
from dataclasses import dataclass, field
from typing import Any

from ._retainer_names import Name, Names, frame, is_kind, module_dict, owner, type_name

# Between a tensor and what has a name for it: a list in a dict in a closure. Deeper is rare, and each level costs a
# look at every object.
_LEVELS = 8
# Objects between two looks at the clock.
_OFTEN = 2048
_MOST_PARENTS = 8
# From one tensor upwards.
_MOST_WAYS = 32
_DEEPEST_FRAME = 1000
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

NOWHERE = Name("nothing that was found (a variable of a running function, or native code)")


@dataclass(eq=False)
class Tensor:
    """One storage that tensors refer to."""

    thing: Any
    size: int
    address: int
    device: str


@dataclass(eq=False)
class Held:
    """An object whose holders are looked for, and tensors that hang on it, each with what is between, leaf first."""

    thing: Any
    tensors: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)
    holders: list[Any] = field(default_factory=list)


class Clock:
    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.complete = True

    def is_over(self) -> bool:
        self.complete = self.complete and time.monotonic() < self.end
        return not self.complete


def tensors(objects: list[Any], clock: Clock) -> list[Tensor]:
    """The tensors among these objects, one for each storage, the largest first."""
    torch = module_dict(sys.modules.get("torch"))
    base: Any = torch.get("Tensor")
    if not is_kind(type(base), type):
        return []
    known: dict[int, bool] = {}
    found: dict[int, Tensor] = {}
    with _plain(torch):
        for count, thing in enumerate(objects):
            if count % _OFTEN == 0 and clock.is_over():
                break
            kind = type(thing)
            is_tensor = known.get(id(kind))
            if is_tensor is None:
                is_tensor = known[id(kind)] = is_kind(kind, base)
            one = _measured(base, thing) if is_tensor else None
            if one is not None and one.size > 0:
                # Any of the views of a storage keeps all of it.
                found.setdefault(one.address or id(thing), one)
    return sorted(found.values(), key=lambda one: -one.size)


def _plain(torch: dict[str, Any]) -> Any:
    """Subclasses of tensors may answer in their own way: with PyTorch's own switch they are not asked."""
    native = torch.get("_C")
    switch = getattr(native, "DisableTorchFunctionSubclass", None) or getattr(native, "DisableTorchFunction", None)
    return switch() if switch is not None else contextlib.nullcontext()


def _measured(base: Any, tensor: Any) -> Tensor | None:
    """By the methods of PyTorch's own class, whatever the tensor's own says."""
    try:
        storage = base.untyped_storage(tensor)
        return Tensor(tensor, int(storage.nbytes()), int(storage.data_ptr()), str(storage.device))
    except Exception:  # Sparse, fake and meta tensors have no storage.
        return None


def keepers(objects: list[Any], found: list[Tensor], clock: Clock) -> list[Name]:
    """For each tensor what keeps it, by the shortest way to something that has a name for it."""
    names, frames = Names(), _in_frames()
    named: list[Name | None] = [None] * len(found)
    frontier = {id(tensor.thing): Held(tensor.thing, [(place, ())]) for place, tensor in enumerate(found)}
    ways = [_MOST_WAYS] * len(found)
    for _ in range(_LEVELS):
        if not frontier or clock.is_over():
            break
        _find_holders(objects, frontier, clock)
        above: dict[int, Held] = {}
        for held in frontier.values():
            known: dict[int, Name | None] = {}
            left = []
            for place, between in held.tensors:
                # Only these two have a part that the holder has a name for.
                inside = between[-1] if between and (type(held.thing) is dict or type(held.thing) is tuple) else None
                if id(inside) not in known:
                    known[id(inside)] = _name(held, inside, names, frames)
                name = known[id(inside)]
                if name is None:
                    left.append((place, (*between, held.thing)))
                elif named[place] is None:
                    named[place] = _path((*between, held.thing)[1:], name)
            for holder in held.holders if left else ():
                # The same dict may have a tensor itself and in a list: each goes its own way, but in no circle.
                for place, between in left:
                    if ways[place] > 0 and not any(holder is one for one in between):
                        ways[place] -= 1
                        above.setdefault(id(holder), Held(holder)).tensors.append((place, between))
        # Python makes the dict of some instances only when it is asked for.
        objects += names.dicts
        names.dicts.clear()
        frontier = above
    return [name or NOWHERE for name in named]


def _name(held: Held, inside: Any, names: Names, frames: dict[int, Name]) -> Name | None:
    for holder in held.holders:
        try:
            name = owner(holder, held.thing, inside, names)
        except Exception:  # An odd object is one that has no name.
            name = None
        if name is not None:
            return name
    return frames.get(id(held.thing))


def _path(between: tuple[Any, ...], name: Name) -> Name:
    """`list in closure variable kept of handle (serve.py:31)`."""
    kinds = [type_name(type(one)) for one in between]
    return Name(" in ".join([*kinds[: max(len(kinds) - name.own, 0)][:3], name.text]), name.file, name.line)


def _find_holders(objects: list[Any], frontier: dict[int, Held], clock: Clock) -> None:
    for count, holder in enumerate(objects):
        if count % _OFTEN == 0 and clock.is_over():
            return
        for child in gc.get_referents(holder):
            held = frontier.get(id(child))
            if held is not None and holder is not child and len(held.holders) < _MOST_PARENTS:
                held.holders.append(holder)


def _in_frames() -> dict[int, Name]:
    """What the variables of running functions refer to, by identity: no objects of the collector. Before Python 3.13
    they cannot be read without a copy that stays with the frame and keeps them alive: there they are not looked at."""
    held: dict[int, Name] = {}
    if sys.version_info < (3, 13):
        return held
    running = list(sys._current_frames().values())
    while running:
        at: types.FrameType | None = running.pop()
        for _ in range(_DEEPEST_FRAME):
            if at is None:
                break
            if at.f_code.co_flags & inspect.CO_OPTIMIZED and not at.f_code.co_filename.startswith(_PACKAGE):
                name = frame(at)
                for child in at.f_locals.values():
                    held.setdefault(id(child), name)
            at = at.f_back
    return held
