"""Calls a function once a module has been imported, whoever imports it and whenever. Costs one comparison for each
import until then, and nothing afterwards; the module itself, its loader and its spec are what they would have been. How
it is heard of is native (`AfterImport`): nothing of this is in the program's tracebacks, or in what it traces."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def after_import(name: str, then: "Callable[[], None]") -> None:
    """Calls `then`, now if the module is there already. What it raises is nobody's business."""
    if _complete(name):
        _call(then)
    else:
        from ._native import AfterImport

        sys.meta_path.insert(0, AfterImport(name, lambda: _call(then)))


def _complete(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _call(then: "Callable[[], None]") -> None:
    try:
        then()
    except Exception as error:
        import os

        if os.environ.get("INFERSCOPE_LOG_LEVEL", "").lower() in ("debug", "trace"):
            print(f"inferscope: {then.__module__}: {error!r}", file=sys.stderr)
