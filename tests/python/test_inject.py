"""The way in: a `sitecustomize` that loads the package and then is as good as not there, in every Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PACKAGE, clean_environment

INJECT = PACKAGE / "_inject"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], env=clean_environment() | environment, capture_output=True, text=True
    )


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    folder = tmp_path / "segments"
    folder.mkdir()
    return folder


def path_of(*folders: object) -> str:
    return os.pathsep.join(str(folder) for folder in folders)


def test_the_program_sees_no_trace_of_the_way_in(record):
    done = record("""
        import os, sys
        assert not any("_inject" in folder for folder in sys.path), sys.path
        assert "_inject" in os.environ["PYTHONPATH"], "children are to be followed"
        assert "inferscope" in sys.modules
        assert "sitecustomize" not in sys.modules
        try: import sitecustomize
        except ModuleNotFoundError: pass
        else: raise AssertionError(sitecustomize)
        assert not any("_inject" in folder for folder in sys.path_importer_cache), sys.path_importer_cache
    """)
    assert done.only


def test_the_programs_own_sitecustomize_runs_as_itself(segments, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.ours = (__name__, __file__)\nVALUE = 42\n")
    code = "import sys, sitecustomize, inferscope; print(sys.ours, sitecustomize.VALUE, inferscope.is_recording())"
    path = path_of(INJECT, own)
    done = run(sys.executable, "-c", code, PYTHONPATH=path, INFERSCOPE_SEGMENTS=str(segments))
    expected = (("sitecustomize", str(own / "sitecustomize.py")), 42, True)
    assert (done.stdout, done.stderr) == (f"{expected[0]} 42 True\n", "")


def test_errors_of_the_programs_own_sitecustomize_are_pythons_to_report(segments, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    for body in ("raise ValueError('mine')", "import no_such_module_anywhere", "raise SystemExit(4)"):
        (own / "sitecustomize.py").write_text(body)
        command = (sys.executable, "-c", "print('went on')")
        alone = run(*command, PYTHONPATH=str(own))
        path = path_of(INJECT, own)
        injected = run(*command, PYTHONPATH=path, INFERSCOPE_SEGMENTS=str(segments))
        # Python's message may name line numbers of its own; the rest is word for word the same.
        assert (injected.returncode, injected.stdout) == (alone.returncode, alone.stdout)
        assert injected.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]


@pytest.mark.parametrize("option", ["-S", "-I", "-E", "-Es", "-IS"])
def test_options_that_keep_us_out_do_no_harm(segments, option):
    code = "import sys; print('inferscope' in sys.modules)"
    done = run(sys.executable, option, "-c", code, PYTHONPATH=str(INJECT), INFERSCOPE_SEGMENTS=str(segments))
    assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)
    assert list(segments.iterdir()) == []


def old_pythons() -> list[Path]:
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [folder / "bin" / "python" for folder in versions.glob("*") if re.match(r"2\.7|3\.[0-9]\.", folder.name)]


def test_pythons_that_are_too_old_run_undisturbed(segments, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.ours = __name__\n")
    code = "import sys; sys.stdout.write(sys.ours); assert 'inferscope' not in sys.modules"
    for python in old_pythons():
        path = path_of(INJECT, own)
        done = run(python, "-B", "-c", code, PYTHONPATH=path, INFERSCOPE_SEGMENTS=str(segments))
        assert (done.stdout, done.stderr, done.returncode) == ("sitecustomize", "", 0), python
        done = run(python, "-B", "-c", "print(1)", PYTHONPATH=str(INJECT), INFERSCOPE_SEGMENTS=str(segments))
        assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0), python
    assert list(segments.iterdir()) == []


def test_without_a_recorder_nothing_is_loaded():
    code = "import sys; print('inferscope' in sys.modules)"
    assert run(sys.executable, "-c", code, PYTHONPATH=str(INJECT)).stdout == "False\n"


def test_another_environment_uses_this_package(segments, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    code = "import sys, inferscope; print(inferscope.__file__, inferscope.is_recording())"
    done = run(python, "-c", code, PYTHONPATH=str(INJECT), INFERSCOPE_SEGMENTS=str(segments))
    assert (done.stdout, done.stderr) == (f"{PACKAGE / '__init__.py'} True\n", "")
    code = f"import sys; print({str(PACKAGE.parent)!r} in sys.path)"
    done = run(python, "-c", code, PYTHONPATH=str(INJECT), INFERSCOPE_SEGMENTS=str(segments))
    assert done.stdout == "False\n"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The package with a native part that cannot be loaded."""
    folder = tmp_path / "site" / "inferscope"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (folder / "_native.abi3.so").write_text("not a library")
    return folder


USES = """
import asyncio, inferscope, sys
from inferscope import scope, step, mark_event
with scope("x", tags={"a": 1}): mark_event("m", metadata={})
@scope("f")
def f(): return 1
assert f() == 1
assert [n for n in step(range(3), name="s")] == [0, 1, 2]
with step("s"): pass
assert not inferscope.is_recording() and inferscope.report_path() is None and inferscope.stop() is None
print(inferscope.start())
inferscope.start()
"""


def test_a_native_part_that_cannot_be_loaded_is_one_warning(broken, segments):
    done = run(sys.executable, "-c", USES, PYTHONPATH=str(broken.parent))
    assert (done.stdout, done.returncode) == ("False\n", 0)
    assert done.stderr.count("RuntimeWarning") == 1 and "native library cannot be loaded" in done.stderr
    injected = run(
        sys.executable, "-c", "print(1)", PYTHONPATH=str(broken / "_inject"), INFERSCOPE_SEGMENTS=str(segments)
    )
    assert (injected.stdout, injected.stderr, injected.returncode) == ("1\n", "", 0)


def test_a_package_that_fails_altogether_is_no_harm(broken, segments):
    (broken / "__init__.py").write_text("raise RuntimeError('broken')")
    done = run(sys.executable, "-c", "print(1)", PYTHONPATH=str(broken / "_inject"), INFERSCOPE_SEGMENTS=str(segments))
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["app.py", "secret"], "app.py"),
        (["-u", "folder/app.py"], "app.py"),
        (["-X", "dev", "-W", "ignore", "app.py"], "app.py"),
        (["-Xdev", "-Wignore", "-m", "package.module", "secret"], "-m package.module"),
        (["-um", "module"], "-m module"),
        (["-mmodule"], "-m module"),
        (["-c", "secret"], "-c"),
        (["-Bc", "secret"], "-c"),
        (["-c", "from multiprocessing.spawn import spawn_main; spawn_main(7)", "secret"], "-c multiprocessing.spawn"),
        (["-Icfrom multiprocessing.resource_tracker import main;main(4)"], "-c multiprocessing.resource_tracker"),
        (["-c", "from multiprocessing.secret import key"], "-c"),
        (["--check-hash-based-pycs", "always", "app.py"], "app.py"),
        (["-"], "-"),
        ([], ""),
    ],
)
def test_the_script_is_found_among_the_interpreters_words(words, name):
    from inferscope._program import _script

    assert _script(words) == name
