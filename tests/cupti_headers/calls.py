"""Which functions of the CUDA runtime and driver matter to a recording, by class, and their callback ids in every
version's headers. The sizes and offsets of records are left to probe.py."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

# The first class that fits a name is its class; what fits none is not recorded. The legacy cu64* names are 32-bit
# callers' and cannot occur.
CLASSES = {
    "launch": r"_*cudaLaunch\w*|cuLaunch\w*|cudaGraphLaunch\w*|cuGraphLaunch\w*",
    "copy": r"cudaMemcpy\w*|cuMemcpy\w*|cudaMem(?:DiscardAnd)?Prefetch\w*|cuMem(?:DiscardAnd)?Prefetch\w*",
    "memset": r"cudaMemset\w*|cuMemset\w*",
    "sync": r"cuda\w+Synchronize\w*|cu\w+Synchronize\w*|cuda\w+WaitEvent\w*|cu\w+WaitEvent\w*",
    "alloc": r"cudaMalloc\w*|cudaFree\w*|cudaHost(?:Alloc|Register|Unregister)\w*|cuMemAlloc\w*|cuMemFree\w*"
    r"|cuMemHost(?:Alloc|Register|Unregister)\w*|cuMem(?:Create|Release|Map|Unmap|Address(?:Reserve|Free))"
    r"|cuMem(?:RetainAllocation|ImportFromShareable|ExportToShareable)Handle|cu(?:da)?Ipc(?:Open|Close)MemHandle\w*",
    "capture": r"cuda\w*(?:Begin|End)Capture\w*|cu\w*(?:Begin|End)Capture\w*"
    r"|cudaGraph(?:Instantiate|Upload)\w*|cuGraph(?:Instantiate|Upload)\w*",
    "reset": r"cudaDeviceReset\w*|cudaThreadExit\w*|cuCtxDestroy\w*|cuDevicePrimaryCtx(?:Reset|Release)\w*"
    r"|cuGreenCtxDestroy",
    "module": r"cuModuleLoad\w*|cuLibraryLoad\w*|cudaLibraryLoad\w*",
}
# Captures for another graphics API ("CiG"): the number was given another meaning between 13.0 and 13.1.
LEFT_OUT = re.compile(r"ToCig")


def class_of(name: str) -> str | None:
    if LEFT_OUT.search(name):
        return None
    return next((kind for kind, pattern in CLASSES.items() if re.fullmatch(pattern, name)), None)


def functions(folders: dict[str, Path]) -> dict[str, str]:
    """Every function of CUPTI that a collector may look up, with the first CUDA version that declares it."""
    first: dict[str, str] = {}
    for cuda, headers in folders.items():
        for file in ("cupti_activity.h", "cupti_callbacks.h", "cupti_result.h", "cupti_version.h", "cupti_events.h"):
            for name in re.findall(r"CUptiResult\s+CUPTIAPI\s+(cupti\w+)\s*\(", (headers / file).read_text()):
                first.setdefault(name, cuda)
    return dict(sorted(first.items()))


def ids(headers: Path, domain: str) -> dict[str, int]:
    """Every callback id that one version's header names."""
    text = (headers / f"cupti_{domain}_cbid.h").read_text()
    found = re.findall(rf"CUPTI_{domain.upper()}_TRACE_CBID_(\w+)\s*=\s*(\w+)", text)
    return {name: int(number, 0) for name, number in found if name not in ("INVALID", "SIZE", "FORCE_INT")}


def calls(folders: dict[str, Path]) -> dict[str, dict[str, list[object]]]:
    """domain → name → [its id, its class, the first and the last CUDA version that have it]. A number that changes its
    meaning between versions would make every reader wrong, so it is an error here."""
    result: dict[str, dict[str, list[object]]] = {}
    for domain in ("runtime", "driver"):
        numbers: dict[str, set[int]] = defaultdict(set)
        names: dict[int, set[str]] = defaultdict(set)
        versions: dict[str, list[str]] = defaultdict(list)
        for cuda, headers in folders.items():
            for name, number in ids(headers, domain).items():
                numbers[name].add(number)
                names[number].add(name)
                versions[name].append(cuda)
        result[domain] = {}
        for name in sorted(numbers, key=lambda name: min(numbers[name])):
            kind = class_of(name)
            if kind is None:
                continue
            if len(numbers[name]) > 1:
                raise SystemExit(f"{domain} {name} has several numbers: {numbers[name]}")
            (number,) = numbers[name]
            others = {other for other in names[number] if class_of(other) not in (kind, None)}
            if others:
                raise SystemExit(f"{domain} {number} is {name} in one version and {others} in another")
            result[domain][name] = [number, kind, versions[name][0], versions[name][-1]]
    return result
