"""What `analyze` and `export` say to things that are no trace, half a trace, or a trace of tomorrow: one sentence, exit
code 5, and never a panic; and the text reports of damaged tables say what is missing."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from recording import INFERSCOPE, Trace, inferscope


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    path = folder / "script.py"
    path.write_text("from inferscope import scope\nfor _ in range(200):\n    with scope('x'): sum(range(1000))\n")
    done = inferscope("run", "--quiet", "--calls", "--output", folder / "trace", "--", path)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "trace"


@pytest.fixture
def copy(good, tmp_path) -> Path:
    shutil.copytree(good, tmp_path / "copy")
    return tmp_path / "copy"


def refused(*arguments, code=5) -> str:
    done = inferscope("analyze", *arguments)
    told = done.stderr.decode()
    assert done.returncode == code, (done.returncode, told)
    assert "panicked" not in told
    assert 0 < len(told.strip().splitlines()) <= 3, told
    return told


def opened(folder: Path) -> str:
    """It opens, or it is refused; nothing else."""
    done = inferscope("analyze", folder)
    told = done.stderr.decode()
    assert done.returncode in (0, 5), (done.returncode, told)
    assert "panicked" not in told
    return done.stdout.decode() if done.returncode == 0 else ""


def test_nothing_there(tmp_path):
    assert str(tmp_path / "missing") in refused(tmp_path / "missing")


def test_no_trace_in_the_default_place(tmp_path):
    done = inferscope("analyze", cwd=tmp_path)
    assert done.returncode == 5
    assert b"inferscope run" in done.stderr


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "manifest.json" in refused(tmp_path / "empty")


@pytest.mark.parametrize("content", [b"", b"just text", b"\x00" * 100, b"PAR1PAR1", b"[]", b"{", b'{"format":"other"}'])
def test_a_file_or_a_manifest_that_is_something_else(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    if content != b"[]":  # As a file that is a trace of no events: InferScope JSON may be a bare list.
        refused(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.json").write_bytes(content)
    refused(tmp_path / "folder")


def test_a_trace_of_a_newer_version(copy):
    manifest = Trace(copy).manifest | {"format_version": 999, "inferscope": "9.9.9"}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    told = refused(copy)
    assert "999" in told
    assert "9.9.9" in told or "newer" in told


def test_unknown_fields_of_a_manifest_are_ignored(copy):
    (copy / "manifest.json").write_text(json.dumps(Trace(copy).manifest | {"from_the_future": [1, 2, {"x": None}]}))
    assert opened(copy)


def test_every_table_may_be_missing(copy):
    for file in sorted(copy.glob("*.parquet")):
        kept = file.read_bytes()
        file.unlink()
        opened(copy)
        file.write_bytes(kept)


def test_all_tables_missing_is_an_honest_summary(copy):
    for file in copy.glob("*.parquet"):
        file.unlink()
    assert opened(copy)


def test_tables_truncated_at_any_byte_and_damaged_anywhere(copy):
    chance = random.Random(7)
    for file in sorted(copy.glob("*.parquet")):
        whole = file.read_bytes()
        cuts = {0, 1, 3, 4, 8, len(whole) - 1, len(whole) - 4, len(whole) - 8, len(whole) - 9}
        cuts |= {chance.randrange(len(whole)) for _ in range(6)}
        for cut in sorted(cut for cut in cuts if 0 <= cut < len(whole)):
            file.write_bytes(whole[:cut])
            opened(copy)
        for _ in range(8):
            damaged = bytearray(whole)
            for _ in range(chance.choice([1, 1, 4, 64])):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            file.write_bytes(damaged)
            opened(copy)
        file.write_bytes(whole)
    assert opened(copy)


def test_a_manifest_truncated_at_any_byte(copy):
    whole = (copy / "manifest.json").read_bytes()
    for cut in range(0, len(whole) - 2, max(1, len(whole) // 25)):
        (copy / "manifest.json").write_bytes(whole[:cut])
        summary = opened(copy)
        assert not summary or "manifest" in summary, "what the tables tell is shown, and what is missing is said"


@pytest.mark.parametrize("kind", ["chrome", "json"])
def test_export_refuses_the_same_things(tmp_path, kind):
    done = inferscope("export", tmp_path, "--format", kind)
    assert done.returncode == 5
    assert b"panicked" not in done.stderr


def test_an_unknown_export_format_is_a_usage_error(good):
    done = inferscope("export", good, "--format", "tea-leaves")
    assert done.returncode == 2
    assert b"chrome" in done.stderr


def test_exported_into_an_unwritable_place(good):
    done = inferscope("export", good, "--format", "json", "--output", "/proc/no/such/place")
    assert done.returncode == 1
    assert b"/proc/no/such/place" in done.stderr


def test_a_reader_who_leaves_early_is_no_error(good):
    done = subprocess.run(f"{INFERSCOPE} analyze {good} | head -n 1", shell=True, capture_output=True)
    assert done.stdout.count(b"\n") == 1
    assert b"panicked" not in done.stderr
