"""Puts what `make gpu-suite` recorded into the repository: `unpack.py suite.tar.gz [FOLDER]`, with a Python that has
pyarrow. The traces are as they were recorded, but for the host's name and for paths, which start at the repository. A
program that the archive has replaces the one that is there; the others stay."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from catalogue import programs

TRACES = Path(__file__).resolve().parents[1] / "traces" / "suite"


def merged(old: Path, new: Path) -> None:
    """Tables by program: what is new replaces what is there."""
    if not old.exists():
        shutil.copy(new, old)
        return
    before, after = json.loads(old.read_text(encoding="utf-8")), json.loads(new.read_text(encoding="utf-8"))
    if isinstance(after, list):
        rows = {row["name"]: row for row in before} | {row["name"]: row for row in after}
        whole: object = [rows[name] for name in sorted(rows)]
    else:
        rows = {row["program"]: row for row in before["verdicts"]} | {row["program"]: row for row in after["verdicts"]}
        measured = before["measured"] | after["measured"]
        # Figures over a mixture of runs are `replay.py`'s to compute.
        whole = {"machine": after["machine"], "verdicts": [rows[name] for name in sorted(rows)], "measured": measured}
    old.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def private(manifest: Path) -> None:
    """The host's name and where the repository lay are nobody's business."""
    text = manifest.read_text(encoding="utf-8")
    document = json.loads(text)
    for host in filter(None, {document.get("host", {}).get("hostname"), document.get("hostname")}):
        text = text.replace(json.dumps(host), '"h200"')
    text = re.sub(r'(?<=")[^"]*?/(?=tests/workloads/)', "", text)
    manifest.write_text(text, encoding="utf-8")


# What stands before a file of the repository or of the package.
REPOSITORY = re.compile(r"^.*?/(?=tests/(?:workloads|gpu)/|inferscope/[a-z_]+\.py$)")


def without_machine(names: Path) -> None:
    """Files of the programs start at the repository, those of the package at its name."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise SystemExit("paths are taken out with pyarrow: .venvs/frameworks/bin/python has it") from None
    table = parquet.read_table(names)
    files = [file and REPOSITORY.sub("", file) for file in table.column("file").to_pylist()]
    column = arrow.array(files, arrow.string())
    field = table.schema.field("file")
    table = table.set_column(table.schema.get_field_index("file"), field, column)
    # The one compression that the reader is built with.
    parquet.write_table(table, names, compression="snappy", store_schema=False)


def main() -> None:
    archive = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else TRACES
    target.mkdir(parents=True, exist_ok=True)
    known = {program.name for program in programs()}
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        for entry in sorted(Path(folder).iterdir()):
            if entry.is_dir():
                if entry.name not in known:
                    raise SystemExit(f"{entry.name} is no program of tests/workloads")
                shutil.rmtree(target / entry.name, ignore_errors=True)
                shutil.copytree(entry, target / entry.name)
                private(target / entry.name / "manifest.json")
                for names in (target / entry.name).glob("names.*.parquet"):
                    without_machine(names)
            else:
                merged(target / entry.name, entry)
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{len([entry for entry in target.iterdir() if entry.is_dir()])} traces in {target}, {size // 1024} KiB")


if __name__ == "__main__":
    main()
