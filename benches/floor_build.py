"""Builds what the GPU scripts need and a GPU machine may not be able to build: the floor collector and the C program,
into dist/. The floor enables exactly what our library does, so its numbers are taken from the library's sources."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GPU = ROOT / "crates" / "collector-cuda" / "src" / "gpu"
GCC = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def captures(word: str, domains: dict[str, int]) -> list[tuple[int, int]]:
    """Domain and number of the calls that begin or end a capture, as NVIDIA's headers have them."""
    expected = json.loads((ROOT / "tests" / "cupti_headers" / "expected.json").read_text(encoding="utf-8"))
    return [
        (domain, number)
        for name, domain in domains.items()
        for call, (number, *_) in expected["calls"][name.lower()].items()
        if f"{word}Capture" in call
    ]


def table(name: str, pairs: list[tuple[int, int]]) -> str:
    return f"static const uint32_t {name}[][2] = {{{', '.join(f'{{{domain}, {call}}}' for domain, call in pairs)}}};\n"


def header() -> str:
    calls = (GPU / "calls.rs").read_text(encoding="utf-8")
    lists = {name: numbers(body) for name, body in re.findall(r"const (\w+): &\[u32\] =\s*&\[([\d,\s]*)\]", calls)}
    domains = {name: int(number) for name, number in re.findall(r"const (DRIVER|RUNTIME): u32 = (\d+)", calls)}
    chosen = re.search(r"const CHOSEN: .*?= &\[(.*?)\];", calls, re.DOTALL)
    pairs = [
        (domains[domain], number)
        for domain, name in re.findall(r"\((\w+), (\w+)\)", chosen.group(1) if chosen else "")
        for number in lists[name]
    ]
    layout = (GPU / "layout.rs").read_text(encoding="utf-8")
    kinds = {name: int(number) for name, number in re.findall(r'(\w+), (\d+), "CUpti', layout)}
    start = re.search(r'Kernel, \d+, "CUpti.*?start: u64 = (\d+)', layout, re.DOTALL)
    graph = re.search(r'Kernel, \d+, "CUpti.*?graph: u32 = (\d+)', layout, re.DOTALL)
    module = (GPU / "enable.rs").read_text(encoding="utf-8")
    wanted = re.search(r"const KINDS: &\[\(u32, &str\)\] = &\[(.*?)\];", module, re.DOTALL)
    enabled = [kinds[name] for name in re.findall(r"layout::(\w+)::KIND", wanted.group(1) if wanted else "")]
    zeroed = re.search(r"const ZEROED_BUFFERS: u32 = (\d+);", module)
    begins, ends = captures("Begin", domains), captures("End", domains)
    if not pairs or not enabled or not begins or not ends or zeroed is None or start is None or graph is None:
        raise SystemExit("floor_build.py: the sources of our library look different: nothing was built")
    return (
        "#include <stdint.h>\n"
        f"enum {{ ZEROED_BUFFERS = {zeroed.group(1)}, KERNEL = {kinds['Kernel']}, RUNTIME = {domains['RUNTIME']} }};\n"
        f"enum {{ KERNEL_START = {start.group(1)}, KERNEL_GRAPH = {graph.group(1)} }};\n"
        f"static const uint32_t KINDS[] = {{{', '.join(map(str, enabled))}}};\n"
        f"{table('CALLS', pairs)}{table('BEGINS', begins)}{table('ENDS', ends)}"
    )


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "floor_calls.h").write_text(header(), encoding="utf-8")
        floor = ROOT / "benches" / "floor_cupti.c"
        subprocess.run(
            [*GCC, "-shared", "-fPIC", "-I", folder, "-o", target / "floor_cupti.so", floor, "-ldl"], check=True
        )
    bare = ROOT / "tests" / "gpu" / "workloads" / "bare.c"
    subprocess.run([*GCC, "-Wno-pedantic", "-o", target / "gpu-bare", bare, "-ldl"], check=True)
    print(f"{target / 'floor_cupti.so'} {target / 'gpu-bare'}")


if __name__ == "__main__":
    main()
