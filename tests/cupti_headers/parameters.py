"""What the structs with a CUDA call's parameters look like, for the calls whose parameters the collector reads, and
whether it reads them right: crates/collector-cuda/src/gpu/parameters.rs says for each call which shape it has."""

from __future__ import annotations

import re
from pathlib import Path

from calls import class_of, ids

FILES = {"runtime": "generated_cuda_runtime_api_meta.h", "driver": "generated_cuda_meta.h"}
READ = ("alloc", "sync")
# (RUNTIME, 20) | (DRIVER, 243 | 549) => Shape::Alloc(DEVICE, false),
LINE = re.compile(r"((?:\((?:RUNTIME|DRIVER), [\d |]+\)\s*\|?\s*)+)=> Shape::(\w+)")
ADDRESS = r"(?:void|CUdeviceptr|CUdeviceptr_v2)"
HANDLE = r"CUmemGenericAllocationHandle"
# What each shape reads, by position: a pattern of the C type. Every parameter in front of the last one read takes eight
# bytes, for the collector counts in eights.
SHAPES = {
    "Alloc": {0: rf"{ADDRESS} ?\*\*?", 1: r"size_t"},
    "AllocPitch": {0: rf"{ADDRESS} ?\*\*?", 1: r"size_t \*", 3: r"size_t"},
    "Register": {0: r"void \*", 1: r"size_t"},
    "Free": {0: r"void \*|CUdeviceptr"},
    "Create": {0: rf"{HANDLE} \*", 1: r"size_t", 2: r"const CUmemAllocationProp \*"},
    "Release": {0: HANDLE},
    "Map": {0: r"CUdeviceptr", 1: r"size_t", 3: HANDLE},
    "Unmap": {0: r"CUdeviceptr", 1: r"size_t"},
    "Retain": {0: rf"{HANDLE} \*", 1: r"void \*"},
    "Import": {0: rf"{HANDLE} \*"},
    "Export": {1: HANDLE},
    "Reserve": {0: r"CUdeviceptr \*", 1: r"size_t"},
    "Unreserve": {0: r"CUdeviceptr", 1: r"size_t"},
    "OpenShared": {0: r"void \*\*|CUdeviceptr \*"},
    "CloseShared": {0: r"void \*|CUdeviceptr"},
    "WaitFor": {0: r"cudaStream_t|CUstream"},
    "Wait": {},
}
EIGHT_BYTES = re.compile(
    r".*\*|size_t|CUdeviceptr|CUmemGenericAllocationHandle|cudaStream_t|CUstream|cudaEvent_t|CUevent"
)


def parameters(folders: dict[str, Path]) -> dict[str, dict[str, list[str]]]:
    """domain → call → the C types of its parameters, in order. They must be the same in every version."""
    result: dict[str, dict[str, list[str]]] = {}
    for domain, file in FILES.items():
        known = result.setdefault(domain, {})
        for cuda, headers in folders.items():
            text = (headers / file).read_text()
            for name in ids(headers, domain):
                struct = re.search(rf"struct {name}_params_st \{{(.*?)\}}", text, re.DOTALL)
                if class_of(name) not in READ or not struct:
                    continue
                types = [
                    " ".join(re.sub(r"\w+\s*$", "", field).split())
                    for field in struct[1].split(";")
                    if field.strip() and "dummy" not in field
                ]
                if known.setdefault(name, types) != types:
                    raise SystemExit(f"{name} has other parameters in CUDA {cuda}: {known[name]} became {types}")
    return result


# const LOCATION_TYPE_AT: usize = 8; // CUmemAllocationProp.location.type
PLACE = re.compile(r"const \w+: usize = (\d+); // (\w+)\.([\w.]+)")


def faults_of_places(expected: dict, source: str) -> tuple[int, list[str]]:
    """How many fields of CUDA's own structs are read, and those that do not lie where the collector reads four
    bytes."""
    found = PLACE.findall(source)
    faults = [
        f"parameters.rs: {struct}.{field} lies at {expected['structs'].get(struct, {}).get(field)}, not at {at}"
        for at, struct, field in found
        if expected["structs"].get(struct, {}).get(field) != [int(at), 4]
    ]
    return len(found), faults


def faults_of_parameters(expected: dict, source: str) -> tuple[int, list[str]]:
    """How many calls' parameters are read, and those that are not as the collector takes them to be."""
    seen, faults = 0, []
    names = {
        (domain.upper(), number): name
        for domain, calls in expected["calls"].items()
        for name, (number, *_) in calls.items()
    }
    for patterns, shape in LINE.findall(source):
        for domain, numbers in re.findall(r"\((RUNTIME|DRIVER), ([\d |]+)\)", patterns):
            for number in map(int, re.findall(r"\d+", numbers)):
                seen += 1
                name = names.get((domain, number))
                types = expected["parameters"][domain.lower()].get(name)
                # Calls that take nothing have no struct.
                if name is None or (types is None and shape != "Wait"):
                    faults.append(f"parameters.rs: {domain} {number} ({name}) is no call whose parameters are known")
                    continue
                faults += [f"parameters.rs: {name}: {fault}" for fault in misread(types or [], SHAPES.get(shape))]
    return seen, faults


def misread(types: list[str], shape: dict[int, str] | None) -> list[str]:
    if shape is None:
        return ["a shape that tests/cupti_headers/parameters.py does not know"]
    faults = []
    for at, pattern in shape.items():
        if at >= len(types) or not re.fullmatch(pattern, types[at]):
            faults.append(f"parameter {at} is {types[at] if at < len(types) else 'not there'}, not {pattern}")
    for at in range(max(shape, default=0)):
        if at < len(types) and not EIGHT_BYTES.fullmatch(types[at]):
            faults.append(f"parameter {at}, a {types[at]}, may not take eight bytes")
    return faults
