"""The native parts of the package: the two in-target libraries, which `import inferscope` and the CUDA driver load, and
the `inferscope` command itself. Everything else about the package is in pyproject.toml."""

import os
import re
from pathlib import Path

from setuptools import setup
from setuptools_rust import Binding, RustBin, RustExtension, Strip

workspace = (Path(__file__).parent / "Cargo.toml").read_text(encoding="utf-8")
version = re.search(r'^\[workspace\.package\]\n(?:.+\n)*?version = "([^"]+)"', workspace, re.MULTILINE)
if version is None:
    raise SystemExit("setup.py: Cargo.toml has no version under [workspace.package]")

# Cargo.lock decides what is built, here as everywhere.
locked = ["--locked"]
# INFERSCOPE_BUILD=quick, for tests: as `cargo test` compiles it. The command is chosen from the whole workspace beside
# an example, so that its dependencies get the very features that tests give them: nothing is compiled a second time.
quick = os.environ.get("INFERSCOPE_BUILD") == "quick"
# What is mapped into the workload is small: optimised as a whole, it loses a seventh.
whole = ["--profile=dev"] if quick else ["--config", 'profile.release.lto="fat"']
command = ["--profile=dev", "--workspace", "--bin=inferscope", "--example=dump_segment"] if quick else []

setup(
    version=version.group(1),
    rust_extensions=[
        RustExtension(
            "inferscope._native",
            path="crates/collector-python/Cargo.toml",
            binding=Binding.PyO3,
            py_limited_api=True,
            args=whole,
            debug=False,
            strip=Strip.All,
            cargo_manifest_args=locked,
        ),
        # What the CUDA driver and NVTX load into any program, with Python or without.
        RustExtension(
            "inferscope._cuda",
            path="crates/collector-cuda/Cargo.toml",
            binding=Binding.NoBinding,
            args=whole,
            debug=False,
            strip=Strip.All,
            cargo_manifest_args=locked,
        ),
        # The binary itself lands in the environment's bin folder: no Python has to start before it does.
        RustBin(
            "inferscope",
            path="crates/cli/Cargo.toml",
            args=command,
            debug=False,
            strip=Strip.All,
            cargo_manifest_args=locked,
        ),
    ],
    # One wheel for CPython 3.10 and every later version.
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
