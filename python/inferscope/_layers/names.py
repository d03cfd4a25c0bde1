"""How modules are called: by their path in the model that is called first from outside
(`encoder.layer.3.attention.self`), the model itself by its class. Looked up once for each model and remembered by
identity, without keeping anything alive."""

from __future__ import annotations

import weakref
from typing import Any

# Models beyond this many are not looked into: somebody makes new ones all the time.
_MOST_ROOTS = 256


class Names:
    def __init__(self) -> None:
        # By id(module). The reference tells whether it is still that module.
        self._paths: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._plain: weakref.ref[Any] | None = None
        self._labels: dict[str, int] = {}

    def name(self, module: Any, around: str | None) -> str:
        """The path of a module that is called inside the one named `around`, or from outside any."""
        known = self._paths.get(id(module))
        if known is None or known[0]() is not module:
            return self._learn(module, around)
        return known[1]

    def forget(self) -> None:
        """Lets go of what is known about modules that are gone."""
        self._paths = {number: known for number, known in self._paths.items() if known[0]() is not None}

    def _learn(self, module: Any, around: str | None) -> str:
        label = class_name(module)
        if around is not None:
            # Not registered with the module that calls it: made on the fly, or kept in a plain list.
            label, prefix = f"{around}.{label}", f"{around}.{label}."
        elif getattr(module, "_is_replica", False):
            prefix = ""  # A copy by DataParallel, a new one for every call.
        else:
            label, prefix = self._root(module, label)
        self._paths[id(module)] = (weakref.ref(module), label)
        if len(self._labels) <= _MOST_ROOTS:
            for path, child in _children(module):
                self._paths[id(child)] = (weakref.ref(child), prefix + path if path else label)
        return label

    def _root(self, module: Any, label: str) -> tuple[str, str]:
        """The first model's paths stand for themselves; those of others begin with their class."""
        plain = self._plain() if self._plain is not None else None
        number = self._labels[label] = self._labels.get(label, 0) + 1
        if plain is None or any(child is plain for _, child in _children(module)):
            self._plain = weakref.ref(module)
            return label, ""
        label = label if number == 1 else f"{label}-{number}"
        return label, f"{label}."


def _children(module: Any) -> list[tuple[str, Any]]:
    try:
        found = list(module.named_modules())
    except Exception:
        return []  # The model's own idea of named_modules: its layers go by their classes.
    return [(".".join(part for part in path.split(".") if part != "_orig_mod"), child) for path, child in found]


def is_compiled(module: Any) -> bool:
    """Whether calling it runs what `torch.compile` made of it."""
    if original(module) is not None:
        return True
    return module.__dict__.get("_compiled_call_impl") is not None


def original(module: Any) -> Any:
    """Of a module that `torch.compile` gave: the one that was compiled."""
    kind = type(module)
    if kind.__name__ == "OptimizedModule" and kind.__module__.startswith("torch._dynamo"):
        return module.__dict__.get("_modules", {}).get("_orig_mod")
    return None


def class_name(module: Any) -> str:
    inner = original(module)
    return type(module if inner is None else inner).__name__
