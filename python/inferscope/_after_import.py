"""Calls a function once a module has been imported, whoever imports it and whenever. Costs one look-up for each import
while anything is waited for; the module itself, its loader and its spec are what they would have been. How it is heard
of is native (`AfterImport`): nothing of this is in the program's tracebacks, or in what it traces."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ._native import AfterImport


class _This:
    # On sys.meta_path while it waits for anything.
    finder: "AfterImport | None" = None


def after_import(name: str, then: "Callable[[], None]") -> None:
    """Calls `then`, now if the module is there already. What it raises is nobody's business."""
    if _complete(name):
        _call(then)
        return
    if _This.finder is None:
        from ._native import AfterImport

        _This.finder = AfterImport()
    _This.finder.add(name, lambda: _call(then))
    # Compared by identity: other finders may have an idea of their own of being equal.
    if not any(finder is _This.finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _This.finder)


def _complete(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _call(then: "Callable[[], None]") -> None:
    try:
        then()
    except Exception as error:
        from . import _settings

        if _settings.verbose():
            print(f"inferscope: {then.__module__}: {error!r}", file=sys.stderr)
