"""Takes what is of the machine out of a trace before it goes into the repository: the host's name, and where the
repository, the environment and Python lay. Everything else stays as it was recorded. Needs pyarrow."""

from __future__ import annotations

import json
import re
from pathlib import Path

# What stands before a file of the repository, a generated program, a package, and a file of Python itself.
STARTS = (
    (re.compile(r'[^"\s]*?/(?=tests/(?:workloads|gpu|frameworks)/)'), ""),
    (re.compile(r'[^"\s]*/programs/(?=seed_)'), ""),
    (re.compile(r'[^"\s]*/lib/(?=python3\.\d+/site-packages/)'), "/venv/lib/"),
    (re.compile(r'/(?!venv/)[^"\s]*/lib/(?=python3\.\d+/|libpython3)'), "/python/lib/"),
)
# Folders of people and of machines; what is left of them has to be given a row above.
PRIVATE = re.compile(r'/(?:root|home|work|tmp|mnt|Users)/[^"\s]*')


def text(of: str) -> str:
    for pattern, instead in STARTS:
        of = pattern.sub(instead, of)
    # A segment or a file of the program's own that has gone when it ended.
    return PRIVATE.sub(lambda found: "/gone/" + found[0].rsplit("/", 1)[1], of)


def trace(folder: Path, host: str) -> None:
    """In place."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise SystemExit("traces are rewritten with pyarrow: .venvs/frameworks/bin/python has it") from None
    for file in folder.glob("*.parquet"):
        before = table = parquet.read_table(file)
        words = [field.name for field in table.schema if arrow.types.is_string(field.type)]
        for name in words:
            values = [value and text(value) for value in table.column(name).to_pylist()]
            place = table.schema.get_field_index(name)
            table = table.set_column(place, table.schema.field(place), arrow.array(values, arrow.string()))
        if table.equals(before):
            continue
        # Small, as the recorder writes it: numbers by their differences. Snappy is what the reader is built with.
        numbers = [field.name for field in table.schema if arrow.types.is_integer(field.type)]
        encoding = dict.fromkeys(numbers, "DELTA_BINARY_PACKED")
        parquet.write_table(
            table, file, compression="snappy", use_dictionary=words, column_encoding=encoding, store_schema=False
        )
    manifest = folder / "manifest.json"
    written = manifest.read_text(encoding="utf-8")
    document = json.loads(written)
    for name in filter(None, {document.get("host", {}).get("hostname"), document.get("hostname")}):
        written = written.replace(json.dumps(name), json.dumps(host))
    manifest.write_text(text(written), encoding="utf-8")
