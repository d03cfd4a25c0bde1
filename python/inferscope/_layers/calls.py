"""How often each model was called while layers were recorded, and so whose next call is still worth a look and when a
look has seen enough. A model is what is called from outside any other module: a program may have several."""

from __future__ import annotations

import weakref
from typing import Any

# Calls of a model until its kernels are known; the first may be unlike the others (kernels are loaded and tried out).
_CALLS = 4
# What a call counts for if the GPU was recorded for a part of it only.
_PART = 0.5
# Calls of known models, one after the other, after which nobody else is waited for: a draft model is called some times
# before the model that it drafts for.
_QUIET = 32
# A look ends after so many calls whatever is missing, and later where there are many models: layers that are called one
# by one, from no module, are models each. Models that are gone do not count: DataParallel makes copies for every call.
_MOST_CALLS, _FOR_EACH, _AT_LAST = 64, 5, 2048


class _Model:
    __slots__ = ("calls", "here", "reference")

    def __init__(self, reference: weakref.ref[Any]) -> None:
        self.reference = reference
        self.calls = 0.0
        self.here = 0


class Calls:
    def __init__(self) -> None:
        # By id(model). The reference tells whether it is still that model.
        self._models: dict[int, _Model] = {}
        self._total = 0
        self._quiet = 0

    def forget(self) -> None:
        """What was seen so far says nothing about what is recorded from now on."""
        self._models = {}
        self.look()

    def look(self) -> None:
        """A new look: one call of each model, or as many as are missing."""
        self._total = self._quiet = 0
        for model in list(self._models.values()):
            model.here = 0

    def wanted(self, root: Any) -> bool:
        """Whether the next call of this model is worth a look."""
        known = self._models.get(id(root))
        if known is None or known.reference() is not root:
            return True
        return known.calls < _CALLS or known.here == 0

    def seen(self, root: Any, whole: bool) -> None:
        """The layers of a call of a model, and its kernels, were recorded as a whole or in part."""
        self._total += 1
        self._quiet = 0
        if root is None:
            return
        known = self._models.get(id(root))
        if known is None or known.reference() is not root:
            known = self._models[id(root)] = _Model(self._follow(root))
        known.calls += 1 if whole else _PART
        known.here += 1

    def passed(self) -> None:
        """A call of a model was not worth a look."""
        self._total += 1
        self._quiet += 1

    def enough(self) -> bool:
        models = list(self._models.values())
        if self._total >= min(max(_MOST_CALLS, _FOR_EACH * len(models)), _AT_LAST):
            return True
        return self._quiet >= _QUIET and all(model.calls >= _CALLS for model in models)

    def _follow(self, root: Any) -> weakref.ref[Any]:
        models, number = self._models, id(root)

        def gone(reference: weakref.ref[Any]) -> None:
            known = models.get(number)
            if known is not None and known.reference is reference:
                models.pop(number, None)

        return weakref.ref(root, gone)
