"""Commands that cannot start, or end at once: one clear sentence, the exit code a shell would give."""

import os

import pytest
from recording import inferscope

pytestmark = pytest.mark.every_python


def test_a_missing_command(record):
    ours = record("no-such-command-anywhere")
    assert ours.code == 127
    assert "no-such-command-anywhere" in ours.told
    assert "not found" in ours.told.lower()
    assert "panicked" not in ours.told


def test_a_missing_script(record, tmp_path):
    ours = record(tmp_path / "missing.py")
    assert ours.code in (2, 127)
    assert "missing.py" in ours.told


def test_a_file_that_is_not_executable(record, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("just text")
    ours = record(plain)
    assert ours.code == 126
    assert "plain" in ours.told
    assert "permission" in ours.told.lower() or "executable" in ours.told.lower()


def test_a_folder_as_command(record, tmp_path):
    assert record(tmp_path).code == 126


def test_an_executable_in_no_known_format(record, tmp_path):
    odd = tmp_path / "odd"
    odd.write_bytes(b"\x00\x01\x02 no format")
    odd.chmod(0o755)
    ours = record(odd)
    # As every shell does, it is tried as a script of one.
    assert ours.code in (126, 127)
    assert "odd" in ours.told


def test_no_command_at_all():
    done = inferscope("run")
    assert done.returncode == 2
    assert b"Usage" in done.stderr


def test_a_command_that_cannot_start_leaves_no_folder_behind(record, tmp_path):
    ours = record("no-such-command-anywhere")
    assert not os.path.exists(ours.trace.folder)


def test_a_script_that_fails_at_once_is_still_a_trace(script, record):
    ours = record(script("1/0"))
    assert ours.code == 1
    assert "ZeroDivisionError" in ours.told
    assert ours.trace.manifest["state"] == "complete"
    assert ours.trace.report


def test_a_script_with_a_syntax_error(script, record):
    ours = record(script("def broken(:"))
    assert ours.code == 1
    assert "SyntaxError" in ours.told
