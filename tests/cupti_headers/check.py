"""Holds the decoder to NVIDIA's headers of every supported CUDA version: expected.json is what they say, and each line
of the decoder's tables must say the same. `--write` renews expected.json; nothing of the headers themselves is kept."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from calls import calls, functions
from fetch import ROOT, fetch
from parameters import faults_of_parameters, faults_of_places, parameters
from probe import RECORDS, probe

EXPECTED = Path(__file__).with_name("expected.json")
GPU = ROOT / "crates" / "collector-cuda" / "src" / "gpu"
# The decoder's tables: record! { Name, kind, "CUpti_..." { field: type = offset, "cuptiField"; ... } } ...
RECORD = re.compile(r"(\w+), (\d+), \"(CUpti_\w+)\" \{(.*?)\n    \}", re.DOTALL)
FIELD = re.compile(r"\w+: ([\w\[\]; ]+) = (\d+), \"([\w.]+)\";")
# ... and one list of callback ids a class of calls.
CALLS = re.compile(r"const (RUNTIME|DRIVER)_([A-Z_]+): &\[u32\] =\s*&\[([\d,\s]*)\];")
# The kind under which CUPTI delivers each family of structs.
KINDS = {
    "CUpti_ActivityKernel": "CONCURRENT_KERNEL",
    "CUpti_ActivityMemcpy": "MEMCPY",
    "CUpti_ActivityMemcpyPtoP": "MEMCPY2",
    "CUpti_ActivityMemset": "MEMSET",
    "CUpti_ActivityMemory": "MEMORY2",
    "CUpti_ActivityMemoryPool": "MEMORY_POOL",
    "CUpti_ActivitySynchronization": "SYNCHRONIZATION",
    "CUpti_ActivityOverhead": "OVERHEAD",
    "CUpti_ActivityDevice": "DEVICE",
    "CUpti_ActivityContext": "CONTEXT",
    "CUpti_ActivityUnifiedMemoryCounter": "UNIFIED_MEMORY_COUNTER",
}


def size_of(rust: str) -> int:
    array = re.fullmatch(r"\[(\w+); (\d+)\]", rust)
    if array:
        return size_of(array[1]) * int(array[2])
    return 8 if rust == "usize" else int(rust[1:]) // 8


def gather(folders: dict[str, Path]) -> dict[str, object]:
    """What all versions say together. A field or a number that moved between versions is an error: the decoder reads
    every version through one table."""
    records: dict[str, dict] = {}
    enums: dict[str, dict[str, int]] = {}
    versions: dict[str, int] = {}
    structs: dict[str, dict] = {}
    for cuda, headers in folders.items():
        found = probe(headers)
        versions[cuda] = found["cupti"]
        for struct, fields in found["structs"].items():
            if structs.setdefault(struct, fields) != fields:
                raise SystemExit(f"{struct} changed in {cuda}: {structs[struct]} became {fields}")
        for name, record in found["records"].items():
            known = records.setdefault(name, {"fields": {}, "since": {}, "structs": {}})
            known["structs"][cuda] = [record["struct"], record["size"]]
            for field, where in record["fields"].items():
                if field in known["fields"] and known["fields"][field] != where:
                    raise SystemExit(f"{name}.{field} moved in {cuda}: {known['fields'][field]} became {where}")
                if field not in known["fields"]:
                    known["fields"][field] = where
                    if cuda != next(iter(folders)):
                        known["since"][field] = cuda
            gone = [field for field in known["fields"] if field not in record["fields"]]
            if gone:
                raise SystemExit(f"{name} lost {gone} in {cuda}")
        for enum, values in found["enums"].items():
            known_values = enums.setdefault(enum, {})
            for name, value in values.items():
                if known_values.setdefault(name, value) != value:
                    raise SystemExit(f"{name} changed in {cuda}: {known_values[name]} became {value}")
    return {
        "cupti": versions,
        "records": records,
        "enums": enums,
        "functions": functions(folders),
        "calls": calls(folders),
        "parameters": parameters(folders),
        "structs": structs,
    }


def text_of(expected: dict[str, object]) -> str:
    """JSON with one field, number or call a line, so that a change reads as one."""
    text = json.dumps(expected, indent=1)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda list_: "[" + re.sub(r"\s*\n\s*", " ", list_[1]) + "]", text) + "\n"


def faults_of_fields(expected: dict, sources: dict[Path, str]) -> tuple[int, list[str]]:
    """How many fields the decoder reads, and those that no header agrees with."""
    seen, faults = 0, []
    families = {family: name for name, family in RECORDS.items()}
    kinds = expected["enums"]["CUpti_ActivityKind"]
    for file, source in sources.items():
        for record in RECORD.finditer(source):
            place = f"{file.relative_to(ROOT)}: {record[1]}"
            known = expected["records"].get(families.get(record[3]))
            if known is None or record[3] not in KINDS:
                faults.append(f"{place}: {record[3]} is no record that the headers were asked about")
                continue
            if int(record[2]) != kinds[f"CUPTI_ACTIVITY_KIND_{KINDS[record[3]]}"]:
                faults.append(f"{place}: kind {record[2]} is not that of {record[3]}")
            oldest = next(iter(expected["cupti"]))
            for rust, offset, field in FIELD.findall(record[4]):
                seen += 1
                if field not in known["fields"]:
                    faults.append(f"{place}: {record[3]} has no field {field} in any version")
                    continue
                where, size = known["fields"][field]
                if [int(offset), size_of(rust)] != [where, size]:
                    faults.append(f"{place}.{field} lies at {where} with {size} bytes, not at {offset} as a {rust}")
                if field in known["since"]:
                    faults.append(f"{place}.{field} is there only since {known['since'][field]}, not in {oldest}")
    return seen, faults


def faults_of_calls(expected: dict, sources: dict[Path, str]) -> tuple[int, list[str]]:
    """How many callback ids there are, and each class that holds others than the headers give it."""
    seen, faults = 0, []
    known: dict[tuple[str, str], dict[int, str]] = {}
    for domain, names in expected["calls"].items():
        for name, (number, kind, *_) in names.items():
            known.setdefault((domain, kind), {})[number] = name
    found = {}
    for source in sources.values():
        for domain, kind, numbers in CALLS.findall(source):
            place = domain.lower(), kind.lower()
            if place not in known:
                # Some of a class: those that have the words in their name.
                words = kind.title().replace("_", "")
                of_domain = expected["calls"].get(domain.lower(), {})
                known[place] = {number: name for name, (number, *_) in of_domain.items() if words in name}
            if not known[place]:
                faults.append(f"{domain}_{kind}: no such call in the headers")
                continue
            found[place] = {int(number) for number in re.findall(r"\d+", numbers)}
    for place, names in known.items():
        ours = found.get(place, set())
        seen += len(ours)
        for number in sorted(names.keys() - ours):
            faults.append(
                f"{' '.join(place)}: {names[number]} ({number}) is in the headers and not in the decoder's list"
            )
        for number in sorted(ours - names.keys()):
            faults.append(f"{' '.join(place)}: {number} is in the decoder's list and no such call in the headers")
    return seen, faults


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", help="renew expected.json from the headers")
    chosen = options.parse_args()
    expected = gather(fetch())
    text = text_of(expected)
    if chosen.write:
        EXPECTED.write_text(text)
    faults = []
    if EXPECTED.read_text() != text:
        faults.append(
            "expected.json is not what the headers say: run tests/cupti_headers/check.py --write and look at git diff"
        )
    sources = {file: file.read_text() for file in sorted(GPU.rglob("*.rs"))}
    seen, wrong = faults_of_fields(expected, sources)
    faults += wrong
    if not seen:
        faults.append(f"no record! table found under {GPU.relative_to(ROOT)}: nothing was checked")
    calls_seen, wrong = faults_of_calls(expected, sources)
    faults += wrong
    read = sources.get(GPU / "parameters.rs", "")
    parameters_seen, wrong = faults_of_parameters(expected, read)
    faults += wrong
    places_seen, wrong = faults_of_places(expected, read)
    faults += wrong
    if places_seen != sum(map(len, expected["structs"].values())):
        faults.append(f"parameters.rs: {places_seen} fields of CUDA's own structs are read, and others are asked about")
    asked = {name for source in sources.values() for name in re.findall(r'c"(cupti\w+)"', source)}
    faults += [f"{name} is no function of CUPTI" for name in sorted(asked - expected["functions"].keys())]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        versions = ", ".join(expected["cupti"])
        calls_words = f"{calls_seen} calls ({parameters_seen} with parameters)"
        print(f"{seen} fields, {calls_words}, {len(asked)} functions agree with the headers of CUDA {versions}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
