# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, ANN205
"""How InferScope gets into a Python process: the recorder puts this folder on PYTHONPATH, and Python imports
`sitecustomize` when it starts. Loads the package, steps aside, and hands over to the program's own sitecustomize.

Plain syntax: this file has to do no harm in any Python, however old."""

import os
import sys


def _load():
    if sys.version_info < (3, 10) or sys.implementation.name != "cpython" or "inferscope" in sys.modules:
        return
    # The package comes from beside this folder, whatever environment the program runs in and whatever it has installed.
    # Not by way of importlib: the program may find out whether that has been imported.
    from _frozen_importlib_external import PathFinder

    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return PathFinder.find_spec(name, [folder]) if name == "inferscope" else None

    sys.meta_path.insert(0, Finder)
    try:
        import inferscope  # noqa: F401
    finally:
        sys.meta_path.remove(Finder)


def _step_aside():
    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    ours = [folder for folder in sys.path if folder and os.path.realpath(folder) == here]
    sys.path[:] = [folder for folder in sys.path if folder not in ours]
    for folder in ours:
        sys.path_importer_cache.pop(folder, None)


def _hand_over():
    # The program's own sitecustomize takes this module's place, as if this one had never been; what it raises goes to
    # Python, which says so in its own words. Where there is none, Python is told just that: it takes this module out of
    # sys.modules and goes on.
    sys.modules.pop("sitecustomize", None)
    import sitecustomize  # noqa: F401


try:
    if os.environ.get("INFERSCOPE_SEGMENTS"):
        _load()
except Exception:  # Nothing that goes wrong here is the program's business; the recorder notices that nobody came.
    pass
_step_aside()
_hand_over()
