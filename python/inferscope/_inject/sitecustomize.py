# mypy: ignore-errors
# ruff: noqa: ANN202
"""How InferScope gets into a Python process: the recorder puts this folder on PYTHONPATH, and Python imports
`sitecustomize` when it starts. Loads the package, steps aside, and hands over to the program's own sitecustomize.

Plain syntax: this file has to do no harm in any Python, however old."""

import os
import sys


def _load():
    # The package comes from beside this folder, whatever environment the program runs in.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.version_info < (3, 10) or sys.implementation.name != "cpython" or "inferscope" in sys.modules:
        return
    from importlib.util import module_from_spec, spec_from_file_location

    init = os.path.join(package, "__init__.py")
    spec = spec_from_file_location("inferscope", init, submodule_search_locations=[package])
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["inferscope"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop("inferscope", None)
        raise


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
