"""Entry points of JAX: the functions that `jit` gives the program. Those that JAX makes for itself, as for one
operation outside any jitted function, are not marked."""

from __future__ import annotations

import sys

from .. import _native
from . import _replace

_MODULE, _MAKES = "jax._src.pjit", "_cpp_pjit"


def follow() -> None:
    module = sys.modules.get(_MODULE)
    make = getattr(module, _MAKES, None)
    if make is not None and _native.entry_result(make, _made):
        _replace(module, _MAKES, make)


def _made(function: object, jitted: object) -> None:
    module = str(getattr(function, "__module__", ""))
    if module.partition(".")[0] not in ("jax", "jaxlib"):
        _native.entry_point(jitted, "jax")
