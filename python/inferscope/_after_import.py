"""Calls a function once a module has been imported, whoever imports it and whenever. Costs one comparison for each
import until then, and nothing afterwards; the module itself, its loader and its spec are what they would have been."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def after_import(name: str, then: Callable[[], None]) -> None:
    """Calls `then`, now if the module is there already. What it raises is nobody's business."""
    if _complete(name):
        _call(then)
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def _complete(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _call(then: Callable[[], None]) -> None:
    try:
        then()
    except Exception as error:
        import os

        if os.environ.get("INFERSCOPE_LOG_LEVEL", "").lower() in ("debug", "trace"):
            print(f"inferscope: {then.__module__}: {error!r}", file=sys.stderr)


class _Finder:
    """Finds nothing itself: has the others find the module, and asks its loader to say when it is done."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then: Callable[[], None] | None = then
        self._looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name or self._looking or self._then is None:
            return None
        self._looking = True
        try:
            spec = _found_by_others(name, path, target)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            self._listen(spec.loader)
        return spec

    def _listen(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)  # The class has the real one.
            execute(module)
            then, self._then = self._then, None
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            if then is not None:
                _call(then)

        if hasattr(loader, "__dict__"):  # Else this module goes without.
            loader.exec_module = exec_module


def _found_by_others(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None
