"""Asks the compiler where every field of CUPTI's records lies in one version's headers, and what its enumerators are
worth. Names are found in the headers, numbers come from gcc; comparing versions is left to check.py."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

# Our name of a record: the family of its structs. CUPTI delivers the newest of a family that its header defines.
RECORDS = {
    "Kernel": "CUpti_ActivityKernel",
    "Memcpy": "CUpti_ActivityMemcpy",
    "MemcpyPeer": "CUpti_ActivityMemcpyPtoP",
    "Memset": "CUpti_ActivityMemset",
    "Memory": "CUpti_ActivityMemory",
    "MemoryPool": "CUpti_ActivityMemoryPool",
    "Synchronization": "CUpti_ActivitySynchronization",
    "Overhead": "CUpti_ActivityOverhead",
    "UnifiedMemory": "CUpti_ActivityUnifiedMemoryCounter",
    "GraphTrace": "CUpti_ActivityGraphTrace",
    "CudaEvent": "CUpti_ActivityCudaEvent",
    "Api": "CUpti_ActivityAPI",
    "Marker": "CUpti_ActivityMarker",
    "MarkerData": "CUpti_ActivityMarkerData",
    "ExternalCorrelation": "CUpti_ActivityExternalCorrelation",
    "Context": "CUpti_ActivityContext",
    "Device": "CUpti_ActivityDevice",
    "CallbackData": "CUpti_CallbackData",
    "ResourceData": "CUpti_ResourceData",
    "GraphData": "CUpti_GraphData",
    "StateData": "CUpti_StateData",
    "UnifiedMemoryConfig": "CUpti_ActivityUnifiedMemoryCounterConfig",
}
ENUMS = (
    "CUpti_ActivityKind",
    "CUpti_ActivityAttribute",
    "CUpti_ActivityMemcpyKind",
    "CUpti_ActivityMemoryKind",
    "CUpti_ActivityMemoryOperationType",
    "CUpti_ActivityMemoryPoolOperationType",
    "CUpti_ActivityMemoryPoolType",
    "CUpti_ActivitySynchronizationType",
    "CUpti_ActivityOverheadKind",
    "CUpti_ActivityObjectKind",
    "CUpti_ActivityThreadIdType",
    "CUpti_ActivityLaunchType",
    "CUpti_ActivityUnifiedMemoryCounterKind",
    "CUpti_ActivityUnifiedMemoryCounterScope",
    "CUpti_ActivityUnifiedMemoryMigrationCause",
    "CUpti_ActivityFlag",
    "CUpti_ApiCallbackSite",
    "CUpti_CallbackDomain",
    "CUpti_CallbackIdResource",
    "CUpti_CallbackIdState",
    "CUptiResult",
)
# Structs of CUDA that calls take a pointer to, and the fields of them that are read.
STRUCTS = {"CUmemAllocationProp": ("location.type", "location.id")}
# Fill that no reader reads; enumerators that only mark the end of a list.
FILL = re.compile(r"(?:pad|padding|reserved)\d*")
END = re.compile(r".*(?:_FORCE_INT|_SIZE|_COUNT|_MAX)")


def source(headers: Path) -> str:
    """The declarations without comments and without the branches for 32-bit machines."""
    files = ("cupti_result.h", "cupti_callbacks.h", "cupti_activity.h")
    text = "\n".join((headers / file).read_text(errors="replace") for file in files)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r"#ifndef CUPTILP64.*?#endif", "", text, flags=re.S)
    return re.sub(r"#[^\n]*", "", text)


def body(text: str, keyword: str, name: str) -> str | None:
    """What stands between the braces of `typedef struct { ... } name;`."""
    end = re.search(rf"\}}\s*{name}\s*;", text)
    if not end:
        return None
    depth, at = 1, end.start()
    while depth:
        at -= 1
        depth += {"}": 1, "{": -1}.get(text[at], 0)
    assert re.search(rf"typedef\s+{keyword}\b[^;{{}}]*$", text[:at]), f"{name} is not a {keyword}"
    return text[at + 1 : end.start()]


def fields(block: str, prefix: str = "") -> list[str]:
    """Every field by its path; those of nested structs and unions follow theirs. Bit fields have no offset."""
    found, at = [], 0
    for match in re.finditer(r"\{|;", block):
        if match.start() < at:
            continue
        if match.group() == "{":
            depth, end = 1, match.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(block[end], 0)
                end += 1
            name = re.match(r"\s*(\w*)\s*;", block[end:])
            assert name, f"no name after the braces: {block[end : end + 40]}"
            path = f"{prefix}{name[1]}"
            if name[1]:
                found.append(path)
            found += fields(block[match.end() : end - 1], f"{path}." if name[1] else prefix)
            at = end + name.end()
        else:
            declared = block[at : match.start()]
            name = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\s*$", declared)
            if name and not re.search(r":\s*\d+\s*$", declared) and not FILL.fullmatch(name[1]):
                found.append(f"{prefix}{name[1]}")
            at = match.end()
    return found


def newest(text: str, family: str) -> str | None:
    """The member of a family with the highest number."""
    numbers = [int(number or 1) for number in re.findall(rf"\}}\s*{family}(\d*)\s*;", text)]
    if not numbers:
        return None
    return family if max(numbers) == 1 else f"{family}{max(numbers)}"


def enumerators(text: str, name: str) -> list[str]:
    block = body(text, "enum", name)
    if block is None:
        return []
    names = (part.partition("=")[0].strip() for part in block.split(","))
    return [name for name in names if re.fullmatch(r"\w+", name) and not END.fullmatch(name)]


def probe(headers: Path) -> dict[str, dict]:
    """{"cupti": version, "records": {record: {"struct", "size", "fields": {name: [offset, size]}}}, "enums": {...},
    "structs": {struct: {field: [offset, size]}}}"""
    text = source(headers)
    lines = ['printf("{\\"cupti\\": %d, \\"records\\": {", CUPTI_API_VERSION);']
    between = ""
    for record, family in RECORDS.items():
        struct = newest(text, family)
        if struct is None:
            continue
        lines.append(
            f'printf("{between}\\"{record}\\": {{\\"struct\\": \\"{struct}\\", \\"size\\": %zu", sizeof({struct}));'
        )
        lines.append('printf(", \\"fields\\": {");')
        comma = ""
        for field in fields(body(text, "struct", struct) or ""):
            where = f"offsetof({struct}, {field}), sizeof((({struct} *)0)->{field})"
            lines.append(f'printf("{comma}\\"{field}\\": [%zu, %zu]", {where});')
            comma = ", "
        lines.append('printf("}}");')
        between = ", "
    lines.append('printf("}, \\"enums\\": {");')
    between = ""
    for enum in ENUMS:
        lines.append(f'printf("{between}\\"{enum}\\": {{");')
        comma = ""
        for name in enumerators(text, enum):
            lines.append(f'printf("{comma}\\"{name}\\": %lld", (long long){name});')
            comma = ", "
        lines.append('printf("}");')
        between = ", "
    lines.append('printf("}, \\"structs\\": {");')
    between = ""
    for struct, names in STRUCTS.items():
        lines.append(f'printf("{between}\\"{struct}\\": {{");')
        comma = ""
        for field in names:
            where = f"offsetof({struct}, {field}), sizeof((({struct} *)0)->{field})"
            lines.append(f'printf("{comma}\\"{field}\\": [%zu, %zu]", {where});')
            comma = ", "
        lines.append('printf("}");')
        between = ", "
    lines.append('printf("}}\\n");')
    program = "#include <stddef.h>\n#include <stdio.h>\n#include <cuda.h>\n#include <cupti.h>\n"
    program += "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    with tempfile.TemporaryDirectory() as scratch:
        code, binary = Path(scratch) / "probe.c", Path(scratch) / "probe"
        code.write_text(program)
        built = subprocess.run(["gcc", "-w", "-I", headers, "-o", binary, code], capture_output=True, text=True)
        if built.returncode:
            raise SystemExit(f"the probe does not compile against {headers.name}:\n{built.stderr[:4000]}")
        return json.loads(subprocess.run([binary], capture_output=True, check=True).stdout)
