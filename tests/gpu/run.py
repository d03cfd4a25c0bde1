"""`make gpu-test`: a PyTorch CUDA program is recorded, its results are the same as without us, and what its CPU side
did is in the trace. There are no GPU collectors yet: this shows that the spine does a CUDA program no harm."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import WORKLOAD, inferscope, require_gpu

STEPS = 300


def run(command: list[object], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environ, timeout=300)


def digest(out: str) -> str:
    return out.partition(" WALL_NS=")[0]


def exported(command: Path, trace: Path, environ: dict[str, str]) -> dict[str, object]:
    file = trace.parent / "events.json"
    done = run([command, "export", trace, "--format", "json", "--output", file], environ)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())


def check(command: Path, environ: dict[str, str], folder: Path, options: list[str]) -> None:
    trace = folder / ("trace" + "".join(options))
    plain = run([sys.executable, WORKLOAD, STEPS], environ)
    assert plain.returncode == 0, plain.stderr
    ours = run([command, "run", "--output", trace, *options, "--", sys.executable, WORKLOAD, STEPS], environ)
    assert ours.returncode == 0, ours.stderr
    assert digest(ours.stdout) == digest(plain.stdout), "the results differ under inferscope run"
    manifest = json.loads((trace / "manifest.json").read_text())
    assert manifest["state"] == "complete", manifest
    names = [scope["name"] for scope in exported(command, trace, environ)["relationships"]["scopes"]]
    assert names.count("forward") == names.count("to host") == STEPS, {name: names.count(name) for name in set(names)}
    summary = run([command, "analyze", trace], environ)
    assert summary.returncode == 0, summary.stderr
    assert "torch_cuda.py" in summary.stdout, summary.stdout
    print(summary.stdout)


def main() -> None:
    print(f"gpu-test on {require_gpu('gpu-test')}")
    command, environ = inferscope()
    cases = [[], ["--calls"], ["--rate", "1000"]]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for options in cases:
            name = " ".join(["inferscope run", *options])
            try:
                check(command, environ, Path(folder), options)
                print(f"PASS {name}")
            except AssertionError as error:
                failed += 1
                print(f"FAIL {name}: {error}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
