"""Finds the `inferscope` command, which is also the recorder that a program alone starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def find() -> str | None:
    """The command's path: as told, else beside this package, else on PATH, else as built in the repository."""
    return next((path for path in _candidates() if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _candidates() -> Iterator[str]:
    told = os.environ.get("INFERSCOPE_BIN")
    if told:
        yield told
    import sysconfig

    for scheme in (None, "posix_user"):
        scripts = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        if scripts:
            yield os.path.join(scripts, "inferscope")
    # The environment that this package is installed in, should the program run in another.
    site = os.path.dirname(_PACKAGE)
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(site))), "bin", "inferscope")
    if sys.executable:
        yield os.path.join(os.path.dirname(sys.executable), "inferscope")
    # A wheel that was unpacked and not installed.
    try:
        folders = sorted(os.listdir(site))
    except OSError:
        folders = []
    for folder in folders:
        if folder.startswith("inferscope-") and folder.endswith(".data"):
            yield os.path.join(site, folder, "scripts", "inferscope")
    for folder in os.get_exec_path():
        yield os.path.join(folder, "inferscope")
    repository = os.path.dirname(site)
    if os.path.isfile(os.path.join(repository, "Cargo.toml")):
        for profile in ("release", "debug"):
            yield os.path.join(repository, "target", profile, "inferscope")
