"""Builds the stand-ins with gcc: libcuda.so.1, a libcupti of one CUDA version in that version's record layouts, and a
program that uses them. What they play is in a script (README.md); what is tested with them is in tests/end_to_end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTED = json.loads((HERE.parent / "cupti_headers" / "expected.json").read_text())
KINDS = EXPECTED["enums"]["CUpti_ActivityKind"]
GCC = [
    "gcc",
    "-std=gnu11",
    "-O1",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-cast-function-type",
    "-fvisibility=hidden",
]
AARCH64 = 183


def version(cuda: str) -> tuple[int, ...]:
    return tuple(map(int, cuda.split(".")))


def soname(cuda: str) -> str:
    """What the file is called: libcupti.so.11.8, libcupti.so.12, libcupti.so.13."""
    return f"libcupti.so.{cuda if cuda.startswith('11') else version(cuda)[0]}"


def layout(cuda: str, grown: int) -> str:
    """layout.h: where each field lies in this version, -1 if it has none. `grown` makes every record longer, as a
    version that nobody has seen yet would."""
    lines = ["/* Written by build.py from tests/cupti_headers/expected.json. */"]
    lines.append(f"#define CUDA_VERSION {version(cuda)[0] * 100 + version(cuda)[1]}")
    lines.append(f"#define CUPTI_VERSION {EXPECTED['cupti'][cuda]}")
    for name, record in EXPECTED["records"].items():
        if cuda not in record["structs"]:
            continue
        extra = grown if record["structs"][cuda][0].startswith("CUpti_Activity") else 0
        lines.append(f"#define SIZE_OF_{name} {record['structs'][cuda][1] + extra}")
        for field, (offset, size) in record["fields"].items():
            there = version(record["since"].get(field, cuda)) <= version(cuda)
            path = field.replace(".", "_")
            lines.append(f"#define OFFSET_{name}_{path} {offset if there else -1}")
            lines.append(f"#define SIZE_{name}_{path} {min(size, 8)}")
    for name, number in KINDS.items():
        lines.append(f"#define {name.removeprefix('CUPTI_ACTIVITY_')} {number}")
    for domain, calls in EXPECTED["calls"].items():
        known = [number for number, _, first, _ in calls.values() if version(first) <= version(cuda)]
        lines.append(f"#define {domain.upper()}_IDS {max(known) + 1}")
    return "\n".join(lines) + "\n"


def apis() -> str:
    """apis.h: the API functions that a script may name. Where a name has several ids the newest counts."""
    found = {}
    for domain, number in (("driver", 1), ("runtime", 2)):
        for name, (callback, *_) in EXPECTED["calls"][domain].items():
            found[re.sub(r"_v\d{4,5}$", "", name)] = (number, callback)
    # One that matters to nobody, to prove that it is not recorded.
    found["cudaGetDevice"] = (2, 17)
    rows = [f'    {{"{name}", {domain}, {callback}}},' for name, (domain, callback) in sorted(found.items())]
    return "static const struct api APIS[] = {\n" + "\n".join(rows) + "\n};\n"


def compile_library(into: Path, sources: Sequence[str], *options: str) -> Path:
    command = [*GCC, "-shared", "-fPIC", f"-I{into.parent}", f"-I{HERE}", f"-Wl,-soname,{into.name}", "-o", str(into)]
    done = subprocess.run(
        [*command, *(str(HERE / source) for source in sources), *options], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"gcc cannot build {into.name}:\n{done.stderr}")
    return into


def build_driver(folder: Path) -> Path:
    """libcuda.so.1 and the program `app`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "apis.h").write_text(apis())
    library = compile_library(
        folder / "libcuda.so.1",
        ["driver.c", "gpu.c", "script.c", "work.c", "arguments.c", "play.c", "log.c"],
        "-lpthread",
        "-ldl",
    )
    subprocess.run([*GCC, "-o", folder / "app", HERE / "app.c", "-ldl"], check=True)
    return library


def build_cupti(folder: Path, cuda: str = "13.0", without: Sequence[str] = (), grown: int = 0) -> Path:
    """One version's libcupti. Its symbols are those that the version has, less `without`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "layout.h").write_text(layout(cuda, grown))
    later = [name for name, first in EXPECTED["functions"].items() if version(first) > version(cuda)]
    hidden = " ".join(f"{name};" for name in [*later, *without])
    (folder / "symbols.map").write_text(f"{{ global: cupti*; local: {hidden} *; }};\n")
    sources = ["cupti.c", "activity.c", "buffers.c", "records.c", "log.c"]
    script = f"-Wl,--version-script={folder / 'symbols.map'}"
    return compile_library(folder / soname(cuda), sources, script, "-lpthread", "-ldl")


def build_runtime(folder: Path, major: int) -> Path:
    """libcudart.so of a major version, which a script maps with `open`."""
    folder.mkdir(parents=True, exist_ok=True)
    return compile_library(folder / f"libcudart.so.{major}", ["cudart.c"], f"-DCUDA_MAJOR={major}")


def build_nothreads(folder: Path) -> Path:
    """For LD_PRELOAD: a program in which no thread can be started."""
    folder.mkdir(parents=True, exist_ok=True)
    return compile_library(folder / "nothreads.so", ["nothreads.c"], "-fvisibility=default")


def for_another_machine(library: Path, into: Path) -> Path:
    """The same library as a file for an ARM machine: the loader refuses it by its header."""
    into.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(library, into)
    with into.open("r+b") as file:
        file.seek(18)
        file.write(AARCH64.to_bytes(2, "little"))
    return into


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print(build_driver(target), build_cupti(target, *sys.argv[2:3]))
