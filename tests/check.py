"""What to run every day: format, lints, and the tests of what changed since upstream's main or in the working tree. For
the crates that were touched these are unit and integration tests (but for those that take long), for those that depend
on them unit tests, and besides the Python tests that were touched. `make test` runs everything."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from every_python import FAVOURITE
from pythons import ROOT, environment, find

TOOLS = Path(sys.executable).parent
BASES = ("upstream/main", "origin/main", "main")
# Folders of tests that need nothing but the quick wheel.
RUNNABLE = ("tests/python", "tests/end_to_end", "tests/exports", "tests/docs")


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def base(asked: str | None) -> str:
    """The commit that this work began from; the current one where nothing else is known."""
    for name in [asked] if asked else BASES:
        known = subprocess.run(["git", "merge-base", "HEAD", name], cwd=ROOT, capture_output=True, text=True)
        if known.returncode == 0:
            return known.stdout.strip()
    if asked:
        raise SystemExit(f"no commit {asked} that this one comes from")
    return "HEAD"


def changed_files(since: str) -> list[str]:
    untracked = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", since).splitlines(), *untracked.splitlines()})


def packages() -> list[dict[str, Any]]:
    command = ["cargo", "metadata", "--no-deps", "--format-version=1"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["packages"]


def folder(package: dict[str, Any]) -> str:
    return Path(package["manifest_path"]).parent.relative_to(ROOT).as_posix()


def crates(files: list[str], known: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The crates that were touched, and those that depend on them."""
    everything = {"Cargo.toml", "Cargo.lock"} & set(files)
    touched = {
        package["name"]
        for package in known
        if everything or any(file.startswith(f"{folder(package)}/") for file in files)
    }
    reached = set(touched)
    while True:
        more = {
            package["name"]
            for package in known
            if package["name"] not in reached and any(needed["name"] in reached for needed in package["dependencies"])
        }
        if not more:
            return sorted(touched), sorted(reached - touched)
        reached |= more


def test_programs(touched: list[str], dependents: list[str], known: list[dict[str, Any]]) -> list[tuple[Path, Path]]:
    """Compiles the tests and gives those to run, each with its folder: unit tests of all, and of the touched crates the
    integration tests, where there is a program `all` only that. Compiled is the whole workspace, as by `make test`:
    with fewer crates, dependencies would have fewer features and be compiled again."""
    with_all = {p["name"] for p in known if any(is_integration(t) and t["name"] == "all" for t in p["targets"])}
    integration = "--test=all" if set(touched) <= with_all else "--test=*"
    command = ["cargo", "test", "--locked", "--workspace", "--no-run", "--lib", "--bins", integration]
    print(f"\n== {' '.join(command)}", flush=True)
    built = subprocess.run([*command, "--message-format=json-render-diagnostics"], cwd=ROOT, stdout=subprocess.PIPE)
    if built.returncode != 0:
        raise SystemExit("the tests do not compile")
    owners = {package["id"]: package for package in known}
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        package = owners.get(message.get("package_id", ""))
        if package is None or not message.get("executable") or not message["profile"]["test"]:
            continue
        name, target = package["name"], message["target"]
        asked = name in touched and (target["name"] == "all" or name not in with_all)
        if asked if is_integration(target) else name in touched + dependents:
            programs.append((Path(message["executable"]), ROOT / folder(package)))
    return programs


def is_integration(target: dict[str, Any]) -> bool:
    return "test" in target["kind"]


def python_tests(files: list[str]) -> list[str]:
    """The test files that were touched; all of the API when the package was, all of the pages when a page was."""
    tests = {
        file
        for file in files
        if file.startswith(RUNNABLE) and Path(file).name.startswith("test_") and (ROOT / file).exists()
    }
    if any(file.startswith("python/") for file in files):
        tests.add("tests/python")
    if any(file == "README.md" or (file.startswith("docs/") and file.endswith(".md")) for file in files):
        tests.add("tests/docs")
    return sorted(test for test in tests if str(Path(test).parent) not in tests)


def run(place: Path, *command: str | Path, **environ: str) -> bool:
    began = time.monotonic()
    print(f"\n== {' '.join(map(str, command))}", flush=True)
    done = subprocess.run(command, cwd=place, env=os.environ | environ).returncode == 0
    print(f"== {'passed' if done else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
    return done


def run_python(tests: list[str]) -> bool:
    if not run(ROOT, "make", "--no-print-directory", "dist/quick/built"):
        return False
    found = find()
    minor = FAVOURITE if FAVOURITE in found else list(found)[-1]
    wheel = ROOT / (ROOT / "dist/quick/built").read_text().strip()
    requirements = [ROOT / "tests" / name for name in ("requirements.txt", "requirements-whole.txt")]
    inside = environment(minor, found[minor], wheel, requirements)
    path = f"{inside.parent}{os.pathsep}{os.environ['PATH']}"
    return run(ROOT, inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, PATH=path, TEST_WHEEL=str(wheel))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--base", metavar="COMMIT", help="what to compare with, instead of upstream's main")
    options.add_argument("--list", action="store_true", help="only say what would be run")
    chosen = options.parse_args()
    files, known = changed_files(base(chosen.base)), packages()
    touched, dependents = crates(files, known)
    commands: list[list[str | Path]] = [
        ["cargo", "fmt", "--all", "--check"],
        [TOOLS / "ruff", "check"],
        [TOOLS / "ruff", "format", "--check"],
        [sys.executable, "tests/house_rules.py"],
    ]
    if any(file.startswith("python/") for file in files):
        commands.append([TOOLS / "mypy"])
    if touched:
        # Of the whole workspace only what changed, and what depends on it, is looked at anew.
        commands.append(["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
    tests = python_tests(files)
    if chosen.list:
        print("\n".join(" ".join(map(str, command)) for command in commands))
        print("\n".join([f"tests of {name}" for name in touched] + [f"unit tests of {name}" for name in dependents]))
        print("\n".join(f"pytest {test}" for test in tests))
        return 0
    failed = [" ".join(map(str, command)) for command in commands if not run(ROOT, *command)]
    programs = test_programs(touched, dependents, known) if touched else []
    failed += [str(program) for program, place in programs if not run(place, program, "--quiet")]
    if tests and not run_python(tests):
        failed.append(f"pytest {' '.join(tests)}")
    print("\n".join(["", *(f"FAILED: {command}" for command in failed)]))
    print(f"{len(files)} files changed: " + (f"{len(failed)} checks failed" if failed else "all is well"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
