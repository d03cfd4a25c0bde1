"""What an object calls another that it refers to: the attribute, the variable, the closure. Only names of types,
variables and attributes are read, and only through C functions of Python's own types: nothing of the program runs."""

from __future__ import annotations

import os
import sys
import types
from dataclasses import dataclass
from typing import Any

# As `type` itself has them, whatever a metaclass says.
_mro = type.__dict__["__mro__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_type_dict = type.__dict__["__dict__"].__get__
_module_dict = vars(types.ModuleType)["__dict__"].__get__

_LONGEST = 120
_MOST_NAMES = 10_000


@dataclass(frozen=True)
class Name:
    """How something is kept."""

    text: str
    file: str | None = None
    line: int | None = None
    # How many of the objects below it are its own, such as the dict of an instance, and no containers of the program.
    own: int = 0


def is_kind(kind: type, base: type) -> bool:
    """As `issubclass`, but that no metaclass is asked: `in` would ask it whether it is equal."""
    return any(one is base for one in _mro(kind))


def module_dict(module: Any) -> dict[str, Any]:
    """The globals of a module; empty for anything else."""
    return _module_dict(module) if is_kind(type(module), types.ModuleType) else {}


def type_name(kind: type) -> str:
    return str.__str__(_qualname(kind))[:_LONGEST]


def instance_dict(thing: Any) -> dict[Any, Any] | None:
    """The attributes of an object. None: it has none, or its class makes something of its own of them."""
    for base in _mro(type(thing)):
        descriptor = _type_dict(base).get("__dict__")
        if descriptor is not None:
            if type(descriptor) is not types.GetSetDescriptorType:
                return None
            found = descriptor.__get__(thing)
            return found if type(found) is dict else None
    return None


def key_of(mapping: dict[Any, Any], child: Any) -> str | None:
    """The name under which a dict of names has it."""
    try:
        for count, (key, value) in enumerate(mapping.items()):
            if value is child:
                return key[:_LONGEST] if type(key) is str else None
            if count > _MOST_NAMES:
                return None
    except RuntimeError:  # Another thread changed it.
        pass
    return None


class Names:
    """The names of modules by their globals, and the dicts of instances that were asked for theirs."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.dicts: list[dict[Any, Any]] = []
        for name, module in list(sys.modules.items()):
            if type(name) is str and is_kind(type(module), types.ModuleType):
                self.names.setdefault(id(_module_dict(module)), name[:_LONGEST])

    def of_global(self, mapping: dict[Any, Any], child: Any) -> Name | None:
        module = self.names.get(id(mapping))
        name = key_of(mapping, child) if module is not None else None
        return Name(f"global {name} of {module}") if name is not None else None


def _code(code: Any, what: str, own: int = 0) -> Name:
    if type(code) is not types.CodeType:
        return Name(what, own=own)
    file = os.path.basename(code.co_filename)
    name = getattr(code, "co_qualname", code.co_name)[:_LONGEST]
    return Name(f"{what} {name} ({file}:{code.co_firstlineno})", code.co_filename, code.co_firstlineno, own)


def frame(holder: types.FrameType) -> Name:
    return _code(holder.f_code, "local variable of")


def owner(holder: Any, child: Any, inside: Any, names: Names) -> Name | None:
    """The name by which an object that has names keeps `child`, or `inside`, where `child` is only a dict or tuple of
    its own around that. None: it is a container that stands between."""
    kind = type(holder)
    if any(kind is one for one in _BETWEEN):
        return None
    if kind is dict:
        return names.of_global(holder, child)
    if kind is types.FunctionType:
        return _function(holder, child, inside)
    for running, code in _RUNNING:
        if kind is running:
            return _code(object.__getattribute__(holder, code), "local variable of")
    if type_name(kind) == "_lru_cache_wrapper":
        return _cached(holder, child)
    return _of_class(holder, child, inside) if is_kind(kind, type) else _of_instance(holder, child, inside, names)


def _of_class(holder: type, child: Any, inside: Any) -> Name | None:
    own = int(type(child) is dict)
    name = _class_attribute(holder, inside if own else child)
    return Name(f"class attribute {name} of {type_name(holder)}", own=own) if name is not None else None


def _of_instance(holder: Any, child: Any, inside: Any, names: Names) -> Name | None:
    attributes = instance_dict(holder)
    if attributes is not None:
        names.dicts.append(attributes)
    own = int(attributes is not None and attributes is child)
    name = _attribute(holder, attributes, inside if own else child)
    return Name(f"attribute {name} of {type_name(type(holder))}", own=own) if name is not None else None


# What only stands between something with a name and what it keeps.
_BETWEEN = (list, tuple, set, frozenset, types.CellType, types.MethodType)
_RUNNING = (
    (types.FrameType, "f_code"),
    (types.GeneratorType, "gi_code"),
    (types.CoroutineType, "cr_code"),
    (types.AsyncGeneratorType, "ag_code"),
)


def _function(holder: types.FunctionType, child: Any, inside: Any) -> Name | None:
    code = holder.__code__
    if child is holder.__closure__:
        named = zip(holder.__closure__ or (), code.co_freevars, strict=False)
        names = [name[:_LONGEST] for cell, name in named if cell is inside]
        return _code(code, f"closure variable {names[0]} of" if names else "closure of", own=2)
    if child is holder.__defaults__ or child is holder.__kwdefaults__:
        return _code(code, "default argument of", own=1)
    # Its globals are a module's.
    return None if child is holder.__globals__ else _code(code, "attribute of function")


def _class_attribute(holder: type, child: Any) -> str | None:
    try:
        for name, value in _type_dict(holder).items():
            if value is child:
                return name[:_LONGEST] if type(name) is str else None
    except RuntimeError:  # Another thread changed it.
        pass
    return None


def _cached(holder: Any, child: Any) -> Name:
    own = int(type(child) is dict)
    attributes = instance_dict(holder)
    wrapped = attributes.get("__wrapped__") if attributes is not None else None
    if type(wrapped) is types.FunctionType:
        return _code(wrapped.__code__, "functools cache of", own)
    return Name("functools cache", own=own)


def _attribute(holder: Any, attributes: dict[Any, Any] | None, child: Any) -> str | None:
    """The attribute of an instance that is `child`."""
    name = key_of(attributes, child) if attributes is not None else None
    if name is not None:
        return name
    for base in _mro(type(holder)):
        for name, descriptor in list(_type_dict(base).items()):
            if type(descriptor) is types.MemberDescriptorType and type(name) is str:
                try:
                    if descriptor.__get__(holder) is child:
                        return name[:_LONGEST]
                except (AttributeError, TypeError):  # The slot is empty.
                    pass
    return None
