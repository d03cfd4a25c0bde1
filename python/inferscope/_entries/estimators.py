# mypy: disable-error-code="import-not-found,import-untyped"
"""Entry points of scikit-learn, and of libraries that are built on it: every class of estimators has functions of its
own, so each is marked when it is made. scikit-learn's base class is told of each by `__init_subclass__`."""

from __future__ import annotations

import sys
from typing import Any

from .. import _native
from . import _REPLACED, mark_method

_FUNCTIONS = ("predict", "predict_proba", "transform")


def follow() -> None:
    base = sys.modules["sklearn.base"].BaseEstimator
    for holder in base.__mro__:
        told = vars(holder).get("__init_subclass__")
        if told is not None and holder is not object:
            _native.entry_result(told.__func__, _made)
            break
    # Those that were there before we were.
    pending = [base]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        _mark(kind)


def _made(kind: type, _result: object) -> None:
    _mark(kind)


def _mark(kind: type) -> None:
    for name in _FUNCTIONS:
        found = vars(kind).get(name)
        # Functions that are there under a condition stand in a descriptor.
        inner: Any = getattr(found, "fn", None)
        if inner is None:
            if found is not None:
                mark_method(kind, name, name)
        elif _native.entry_point(inner, name) and _REPLACED:
            found.fn = _native.entry_replacement(inner)  # type: ignore[union-attr]
