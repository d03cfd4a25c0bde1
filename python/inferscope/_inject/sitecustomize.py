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
    # importlib.machinery and not importlib.util: that would import a dozen modules before the program does.
    from importlib.machinery import PathFinder

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
    sys.path[:] = [folder for folder in sys.path if not folder or os.path.realpath(folder) != here]


def _hand_over():
    # The program's own sitecustomize takes this module's place, as if this one had never been; what it raises goes to
    # Python, which says so in its own words.
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize" or "sitecustomize" not in str(error):
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own


try:
    if os.environ.get("INFERSCOPE_SEGMENTS"):
        _load()
except Exception:  # Nothing that goes wrong here is the program's business; the recorder notices that nobody came.
    pass
_step_aside()
_hand_over()
