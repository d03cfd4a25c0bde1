"""The JSON of `inferscope top`: as its schema says it, for recordings of a GPU and of a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schema" / "live.schema.json").read_text(encoding="utf-8"))
INFERSCOPE = Path(sys.executable).with_name("inferscope")


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("window", ["0.5", "30"])
@pytest.mark.parametrize("name", ["decode", "copies", "graphs"])
def test_the_model_is_as_the_schema_says(name: str, window: str) -> None:
    words = [INFERSCOPE, "top", ROOT / "tests" / "traces" / name, "--once", "--json", "--window", window]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    model = json.loads(done.stdout)
    assert list(Draft202012Validator(SCHEMA).iter_errors(model)) == []
    for field in SCHEMA["required"]:
        broken = {key: value for key, value in model.items() if key != field}
        assert not Draft202012Validator(SCHEMA).is_valid(broken), field
