"""Programs that mark nothing have steps too: the outermost calls into known entry points (a model, `generate`,
`predict`, a request handler) are recorded as entries. Which functions those are stands here, by the module they come
with; each is marked once that module is imported. How is native (`_native.entry_point`): nothing of ours is in a
call, and a call inside an entry costs a look at a flag."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Hook = Callable[[str, int], None]

# Module, class, function, and the kind of the entry. Its name is the kind and the class of the object that is called.
_CALLS = (
    ("torch.nn.modules.module", "Module", "__call__", "model"),
    ("transformers.generation.utils", "GenerationMixin", "generate", "generate"),
    ("transformers.pipelines.base", "Pipeline", "__call__", "pipeline"),
    ("keras.src.models.model", "Model", "predict", "keras"),
    ("keras.src.layers.layer", "Layer", "__call__", "keras"),
    ("onnxruntime.capi.onnxruntime_inference_collection", "Session", "run", "onnx"),
    ("onnxruntime.capi.onnxruntime_inference_collection", "Session", "run_with_ort_values", "onnx"),
    ("onnxruntime.capi.onnxruntime_inference_collection", "Session", "run_with_iobinding", "onnx"),
)

# Module, class, function, and where the request's method is: number of an argument, attribute of that, key in that.
_REQUESTS: "tuple[tuple[str, str, str, tuple[int, str | None, str | None]], ...]" = (
    ("uvicorn.protocols.http.h11_impl", "RequestResponseCycle", "run_asgi", (0, "scope", "method")),
    ("uvicorn.protocols.http.httptools_impl", "RequestResponseCycle", "run_asgi", (0, "scope", "method")),
    ("starlette.applications", "Starlette", "__call__", (1, None, "method")),
    ("aiohttp.web_app", "Application", "_handle", (1, "method", None)),
    ("wsgiref.handlers", "BaseHandler", "run", (0, "base_env", "REQUEST_METHOD")),
    ("werkzeug.serving", "WSGIRequestHandler", "run_wsgi", (0, "command", None)),
    ("gunicorn.workers.sync", "SyncWorker", "handle_request", (2, "method", None)),
    ("gunicorn.workers.gthread", "ThreadWorker", "handle_request", (1, "method", None)),
    ("gunicorn.workers.base_async", "AsyncWorker", "handle_request", (2, "method", None)),
    ("flask.app", "Flask", "__call__", (1, None, "REQUEST_METHOD")),
)

# CPython 3.11 runs Python functions that are called by name without asking how they are called.
_REPLACED = sys.version_info[:2] == (3, 11)

_begun: "set[str]" = set()
_hooks: "list[tuple[Hook, Hook]]" = []


def follow() -> None:
    """To be called when recording has begun. Any number of times."""
    from .. import _native
    from .._after_import import after_import

    if _native.setting("entries") != "true" or _begun:
        return
    modules = {row[0] for row in (*_CALLS, *_REQUESTS)}
    _begun.update(modules)
    for module in modules:
        after_import(module, lambda module=module: _mark(module))  # type: ignore[misc]
    after_import("jax", _jax)
    after_import("sklearn.base", _estimators)


def add_hooks(begin: "Hook", end: "Hook") -> None:
    """Has `begin` called when an outermost call of a model begins, and `end` when it ends, both on its thread and with
    the entry's name and id: `begin` before the entry is recorded, `end` after. Requests are not told of: they may take
    turns on one thread. What hooks raise is swallowed."""
    _hooks.append((begin, end))
    _set_hooks()


def remove_hooks(begin: "Hook", end: "Hook") -> None:
    """Takes back what `add_hooks` was given. For a call that is in progress `end` is not called any more."""
    _hooks[:] = [pair for pair in _hooks if pair != (begin, end)]
    _set_hooks()


def _set_hooks() -> None:
    from .. import _native

    if _hooks:
        _native.entry_hooks(_begins, _ends)
    else:
        _native.entry_hooks()


def _begins(name: str, entry: int) -> None:
    for begin, _ in tuple(_hooks):
        _tell(begin, name, entry)


def _ends(name: str, entry: int) -> None:
    for _, end in reversed(tuple(_hooks)):
        _tell(end, name, entry)


def _tell(hook: "Hook", name: str, entry: int) -> None:
    try:
        hook(name, entry)
    except Exception:
        return  # The program's call goes on whatever happens here.


def _mark(module: str) -> None:
    from .. import _native

    for name, owner, function, kind in _CALLS:
        if name == module:
            mark_method(getattr(sys.modules[module], owner, None), function, kind)
    for name, owner, function, where in _REQUESTS:
        if name == module:
            holder, found = _find(getattr(sys.modules[module], owner, None), function)
            if found is not None and _native.entry_request(found, *where):
                _replace(holder, function, found)


def mark_method(owner: object, name: str, kind: str) -> None:
    """Marks a function of a class, or of the class that it has it from."""
    from .. import _native

    holder, function = _find(owner, name)
    if function is not None and _native.entry_point(function, kind):
        _replace(holder, name, function)


def _find(owner: object, name: str) -> "tuple[object, object]":
    for holder in getattr(owner, "__mro__", ()):
        if name in vars(holder):
            return holder, vars(holder)[name]
    return None, None


def _replace(holder: object, name: str, function: object) -> None:
    # What a type calls itself, as for `model(x)`, is asked for in every version.
    if _REPLACED and not name.startswith("__"):
        from .. import _native

        setattr(holder, name, _native.entry_replacement(function))


def _jax() -> None:
    from . import jitted

    jitted.follow()


def _estimators() -> None:
    from . import estimators

    estimators.follow()
