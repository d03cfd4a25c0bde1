"""`profile_function` and `profile_context` with one profiler for the whole program, and models whose calls are
measured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ._collector import imported
from ._devices import GPU_COLLECTORS
from ._errors import DeviceUnavailable
from ._measure import Measurement
from ._profilers import CPUMemoryProfiler, GPUMemoryProfiler, TFMemoryProfiler, _Profiler
from ._wrap import wrapped

Function = TypeVar("Function", bound=Callable[..., Any])
Profiler = GPUMemoryProfiler | CPUMemoryProfiler | TFMemoryProfiler

_lock = threading.Lock()
_chosen: _Profiler | None = None
_made: dict[str, _Profiler] = {}


def get_global_profiler(device: Any = None) -> _Profiler:
    """The one that was set; else of the device; else of the first GPU that the program uses, or of the host."""
    with _lock:
        if _chosen is not None and device is None:
            return _chosen
        if device is None:
            running = any(kind().is_available() for kind in GPU_COLLECTORS)
            device = None if running else "cpu"
        key = str(device)
        if key not in _made:
            _made[key] = CPUMemoryProfiler() if key == "cpu" else GPUMemoryProfiler(device)
        return _made[key]


def set_global_profiler(profiler: Profiler | None) -> None:
    """Which one `profile_function` and `profile_context` use. None: the usual choice again."""
    global _chosen  # noqa: PLW0603 - this is what it is for
    with _lock:
        _chosen = profiler


@overload
def profile_function(func: Function) -> Function: ...
@overload
def profile_function(
    func: None = None, *, name: str | None = None, device: Any = None, profiler: Profiler | None = None
) -> Callable[[Function], Function]: ...
def profile_function(
    func: Any = None, *, name: str | None = None, device: Any = None, profiler: Profiler | None = None
) -> Any:
    """A decorator: each call is measured, and returns what it returned. Without a GPU in use it is host memory; which
    device it is, is chosen at each call."""

    def decorate(function: Function) -> Function:
        label: str = name or getattr(function, "__qualname__", "") or repr(function)
        return wrapped(function, lambda: profile_context(label, device, profiler))

    return decorate if func is None else decorate(func)


def profile_context(name: str = "context", device: Any = None, profiler: Profiler | None = None) -> Measurement:
    """`with profile_context("load") as load:`; afterwards `load.result` has the numbers."""
    return (profiler or get_global_profiler(device)).profile_context(name)


def clear_results() -> None:
    """Forgets the results of all profilers that were made here."""
    with _lock:
        profilers = [*_made.values(), *([_chosen] if _chosen is not None else [])]
    for profiler in profilers:
        profiler.clear_results()


class ProfiledLayer:
    """A layer, or anything that is called, with each call measured. Everything else is the layer's own."""

    def __init__(
        self, layer: Callable[..., Any], name: str | None = None, device: Any = None, profiler: Profiler | None = None
    ) -> None:
        if not callable(layer):
            raise TypeError(f"a layer must be callable, got {layer!r:.60}")
        # Keras layers have names of their own.
        own = getattr(layer, "name", None)
        label = name or (own if isinstance(own, str) and own else type(layer).__name__)
        self.__dict__.update(_layer=layer, _label=label, _device=device, _profiler=profiler)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with profile_context(self._label, self._device, self._profiler):
            return self._layer(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # While it is copied or unpickled it has no layer yet.
        if name.startswith("__") or "_layer" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._layer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._layer, name, value)


def _module_class(base: type[Any]) -> type[Any]:
    def initialise(self: Any, module: Any, name: str | None, device: Any, profiler: Profiler | None) -> None:
        base.__init__(self)
        self.module = module
        self._measured = (name or type(module).__name__, device, profiler)

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        with profile_context(*self._measured):
            return self.module(*args, **kwargs)

    return type(
        "ProfiledModule", (base,), {"__init__": initialise, "forward": forward, "__doc__": ProfiledModule.__doc__}
    )


_classes: dict[type[Any], type[Any]] = {}


class ProfiledModule:
    """A `torch.nn.Module` around another, with each call of it measured. The module is `.module`, unchanged."""

    def __new__(cls, module: Any, name: str | None = None, device: Any = None, profiler: Profiler | None = None) -> Any:
        torch = imported("torch")
        if torch is None:
            raise DeviceUnavailable("PyTorch is not imported in this process: import torch first, or use ProfiledLayer")
        base = torch.nn.Module
        if not isinstance(module, base):
            raise TypeError(
                f"ProfiledModule takes a torch.nn.Module, got {module!r:.60}; ProfiledLayer takes any callable"
            )
        with _lock:
            made = _classes.setdefault(base, _module_class(base)) if base not in _classes else _classes[base]
        return made(module, name, device, profiler)
