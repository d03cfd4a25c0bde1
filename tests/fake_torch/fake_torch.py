"""Builds stand-ins for the two libraries of PyTorch whose allocators are recorded, with the real names of their
functions: for tests of what a GPU would do where there is none. The real PyTorch is tested on the CPU
(tests/frameworks)."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
GCC = ["gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-z,lazy", "-pthread"]


def compile_library(into: Path, source: str, *options: str) -> Path:
    command = [*GCC, f"-Wl,-soname,{into.name}", "-o", str(into), str(HERE / source), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"gcc cannot build {into.name}:\n{done.stderr}")
    return into


def build(folder: Path, reports: bool = True, protected: bool = False, c10: str = "libc10.so") -> Path:
    """libc10.so and libc10_cuda.so in this folder. `protected`: the slots of calls are read-only, as a distribution
    may have it. `c10`: another name of the first, for the loader takes two of one name to be the same."""
    folder.mkdir(parents=True, exist_ok=True)
    compile_library(folder / c10, "c10.c")
    options = [f"-L{folder}", f"-l:{c10}", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
    options += ["-DREPORTS"] if reports else []
    options += ["-Wl,-z,now,-z,relro"] if protected else []
    compile_library(folder / "libc10_cuda.so", "c10_cuda.c", *options)
    return folder


MODULE = """
import ctypes, os
folder = os.path.dirname(__file__)
cuda, c10 = ctypes.CDLL(folder + "/libc10_cuda.so"), ctypes.CDLL(folder + "/libc10.so")
cuda.c10_cuda_block.argtypes = (ctypes.c_uint64, ctypes.c_int64, ctypes.c_int)
cuda.c10_cuda_fail.argtypes = (ctypes.c_int64, ctypes.c_int)
cuda.c10_cuda_reserve.argtypes = cuda.c10_cuda_in_a_thread.argtypes = (ctypes.c_int64,)
c10.c10_cpu_alloc.restype, c10.c10_cpu_alloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
"""


def module(folder: Path) -> Path:
    """A `torch` beside the two libraries that loads them, for programs that import it."""
    (folder / "torch.py").write_text(MODULE)
    return folder


def slot(library: Path) -> int:
    """Where the library keeps the function that it tells of blocks, from its beginning on."""
    told = subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in told.splitlines() if "JUMP_SLO" in line and "reportMemoryUsageToProfiler" in line]
    return int(line.split()[0], 16)
