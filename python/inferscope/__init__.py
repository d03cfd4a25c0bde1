"""Says what a program is doing, to the InferScope recorder.

Under ``inferscope run`` everything here is recorded. Alone, call :func:`start`, or set ``INFERSCOPE_ENABLE=1`` before
the program starts. Otherwise nothing is recorded and a scope costs next to nothing.

    from inferscope import scope, mark_event, step

    for batch in step(batches, name="request"):
        with scope("inference", tags={"size": len(batch)}):
            if not cached(batch):
                mark_event("cache_miss", metadata={"key": batch.key})

Nothing here raises an error into the program because of recording: what cannot be recorded is left out and counted.

(PYTEST_DONT_REWRITE: there is no assertion here for pytest to rewrite, and no warning that it came too late for that.)
"""

from ._recording import begin_if_asked, is_recording, report_path, start, stop
from ._surface import Scope, __version__, mark_event, scope, step

__all__ = [
    "Scope",
    "__version__",
    "is_recording",
    "mark_event",
    "report_path",
    "scope",
    "start",
    "step",
    "stop",
]

# Where docstrings are left out (-OO) it is still there for pytest, which would else warn of a package that was imported
# before it: under `inferscope run` this one is. With `-W error` the warning ends pytest.
__doc__ = __doc__ or "PYTEST_DONT_REWRITE"

begin_if_asked()
