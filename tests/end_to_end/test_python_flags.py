"""Pythons that will not let the collectors in, or that we do not support: the program runs, the trace says what is
missing and why."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recording import PATIENCE_S, SCOPE, environment

pytestmark = pytest.mark.every_python

SCRIPT = """
    import sys
    try:
        from inferscope import scope
    except ImportError:
        from contextlib import nullcontext as scope
    with scope("hello"): print("ran")
"""


def test_the_users_own_sitecustomize_runs_as_well(script, record, tmp_path):
    script("import builtins; builtins.from_site = 'mine'", name="site/sitecustomize.py")
    path = script("from inferscope import scope\nwith scope(from_site): print(from_site)")
    ours = record(path, env=environment(PYTHONPATH=str(tmp_path / "site")))
    assert (ours.code, ours.out) == (0, b"mine\n")
    assert ours.trace.texts(SCOPE) == ["mine"]


def test_a_broken_sitecustomize_fails_as_it_does_without_us(script, record, tmp_path):
    script("raise RuntimeError('broken site')", name="site/sitecustomize.py")
    path = script("print('ran')")
    environ = environment(PYTHONPATH=str(tmp_path / "site"))
    alone = subprocess.run([sys.executable, path], capture_output=True, env=environ)
    ours = record(path, env=environ, options=("--quiet",))
    assert (ours.code, ours.out) == (alone.returncode, alone.stdout)
    assert (b"broken site" in ours.err) == (b"broken site" in alone.stderr)


@pytest.mark.parametrize("flag", ["-S", "-I", "-E", "-s", "-B", "-O", "-X dev"])
def test_flags_never_harm_the_program(script, record, flag):
    ours = record(sys.executable, *flag.split(), script(SCRIPT))
    assert (ours.code, ours.out) == (0, b"ran\n"), ours.told
    assert ours.trace.manifest["state"] == "complete"


@pytest.mark.parametrize("flag", ["-S", "-I", "-E"])
def test_the_trace_says_that_a_flag_kept_the_collectors_out(script, record, trace, flag):
    ours = record(sys.executable, flag, script(BUSY_UNTIL_SEEN), trace / "samples.*.parquet")
    assert ours.code == 0, "no stacks were sampled"
    notes = " ".join(ours.trace.notes)
    assert flag in notes or "sitecustomize" in notes, notes
    # Stacks come from outside: no flag keeps them out.
    assert ours.trace.table("samples")


# Until it has been looked at from outside, which its argument shows: a file that comes then. Python 2 as well.
BUSY_UNTIL_SEEN = f"""
import glob, sys, time
now = getattr(time, "monotonic", time.time)
end = now() + {PATIENCE_S / 2}
while not glob.glob(sys.argv[1]):
    if now() > end: sys.exit(1)
"""

OLD = [
    Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions", folder.name, "bin", "python")
    for folder in sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("*"))
    if re.fullmatch(r"3\.[6-9]\.\d+|2\.7\.\d+", folder.name)
]


@pytest.mark.parametrize("python", OLD, ids=lambda python: python.parents[1].name)
def test_an_unsupported_python_runs_unharmed_and_the_trace_says_so(script, record, trace, python):
    ours = record(python, script(BUSY_UNTIL_SEEN + "print('ran'); sys.exit(4)"), trace / "counters.*.parquet")
    assert (ours.code, ours.out) == (4, b"ran\n"), ours.told
    assert b"Traceback" not in ours.err
    notes = " ".join(ours.trace.notes)
    assert "3.10" in notes, notes


def test_a_python_script_that_is_named_py_runs_in_the_python_on_path(script, record):
    ours = record(script("import sys; print(sys.executable)"))
    assert Path(ours.out.decode().strip()).resolve() == Path(sys.executable).resolve()
