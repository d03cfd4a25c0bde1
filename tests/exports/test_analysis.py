"""The reports with verdicts, read by others: the analysis JSON with its JSON Schema, the Markdown with a reader that
makes links of whatever can be taken for one. One of the timelines has names that try to become markup."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((ROOT / "schema" / "analysis.schema.json").read_text(encoding="utf-8"))
COMPARISON = json.loads((ROOT / "schema" / "comparison.schema.json").read_text(encoding="utf-8"))
TIMELINES = ["service", "unwell", "no_steps", "empty", "nothing", "hostile", "gpu"]
COMPARISONS = ["slower", "devices", "whole", "evil"]
# All that the report itself writes as HTML.
OURS = {"<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "<!-- -->"}


@pytest.fixture(scope="session")
def analyses(tmp_path_factory: pytest.TempPathFactory, rust_example: Callable[[str], Path]) -> Path:
    folder = tmp_path_factory.mktemp("analyses")
    subprocess.run([rust_example("analyses"), folder], check=True)
    return folder


def read(analyses: Path, name: str) -> Any:
    return json.loads((analyses / f"{name}.analysis.json").read_text(encoding="utf-8"))


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", TIMELINES)
def test_every_analysis_is_valid(analyses: Path, name: str) -> None:
    errors = list(Draft202012Validator(SCHEMA).iter_errors(read(analyses, name)))
    assert not errors, "\n".join(f"{error.json_path}: {error.message}" for error in errors)


@pytest.mark.parametrize("name", COMPARISONS)
def test_every_comparison_is_valid(analyses: Path, name: str) -> None:
    Draft202012Validator.check_schema(COMPARISON)
    document = json.loads((analyses / f"{name}.comparison.json").read_text(encoding="utf-8"))
    errors = list(Draft202012Validator(COMPARISON).iter_errors(document))
    assert not errors, "\n".join(f"{error.json_path}: {error.message}" for error in errors)
    for field in ["metrics", "environment", "gates"]:
        broken = {key: value for key, value in document.items() if key != field}
        assert not Draft202012Validator(COMPARISON).is_valid(broken), field


@pytest.mark.parametrize("name", [*(f"{name}.check" for name in TIMELINES), "gpu.whatif"])
def test_every_short_result_is_valid(analyses: Path, name: str) -> None:
    schema = json.loads((ROOT / "schema" / f"{name.split('.')[1]}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    document = json.loads((analyses / f"{name}.json").read_text(encoding="utf-8"))
    errors = list(Draft202012Validator(schema).iter_errors(document))
    assert not errors, "\n".join(f"{error.json_path}: {error.message}" for error in errors)
    for field in document:
        broken = {key: value for key, value in document.items() if key != field}
        assert not Draft202012Validator(schema).is_valid(broken), field


@pytest.mark.parametrize(
    "break_it",
    ["gpu", "answer", "waterfall.lanes", "slow_steps.sentence", "steps.count", "health.dropped", "host.lines"],
)
def test_the_schema_refuses_what_lacks_a_field(analyses: Path, break_it: str) -> None:
    analysis = read(analyses, "service")
    *path, last = break_it.split(".")
    holder = analysis
    for part in path:
        holder = holder[part]
    del holder[last]
    assert not Draft202012Validator(SCHEMA).is_valid(analysis)


@pytest.mark.parametrize("name", TIMELINES)
def test_shares_add_up_and_findings_are_ranked(analyses: Path, name: str) -> None:
    analysis = read(analyses, name)
    parts = analysis["timeline_breakdown"]
    assert not parts or sum(part["percentage"] for part in parts) == pytest.approx(100, abs=1e-9)
    durations = sum(part["duration_us"] for part in parts)
    assert durations == pytest.approx(analysis["summary"]["breakdown_us"])
    # Each device accounts for the whole of its time, busy and idle; without one, the step's thread for what it waited.
    shares: dict[tuple[int | None, int | None], float] = {}
    for part in analysis["idle_breakdown"]:
        whose = (part["device"], part["pid"])
        shares[whose] = shares.get(whose, 0) + part["percentage"]
    assert list(shares.values()) == [pytest.approx(100, abs=1e-9)] * len(shares)
    if (None, None) in shares:
        idle = sum(part["duration_us"] for part in analysis["idle_breakdown"])
        assert idle == pytest.approx(analysis["summary"]["total_idle_us"] or 0)
    gains = [(finding["gain_percent"] or {"mid": -1})["mid"] for finding in analysis["findings"]]
    assert gains == sorted(gains, reverse=True)


def test_a_device_is_told_of_where_there_is_one(analyses: Path) -> None:
    analysis = read(analyses, "gpu")
    (device,) = analysis["gpu"]
    assert device["busy_us"] == pytest.approx(device["step_us"] * device["busy_percent_of_step"] / 100)
    assert device["leading_gap_us"] + device["span_us"] + device["trailing_gap_us"] == pytest.approx(device["step_us"])
    assert analysis["summary"]["total_gpu_time_us"] == device["busy_us"]
    assert sum(kernel["percent"] for kernel in analysis["gpu_work"]["kernels"]) == pytest.approx(100, abs=0.01)
    for name in set(TIMELINES) - {"gpu", "hostile"}:
        assert not read(analyses, name)["gpu"] and "gpu_work" not in read(analyses, name)


def rendered(analyses: Path, name: str) -> str:
    text = (analyses / f"{name}.md").read_text(encoding="utf-8")
    return MarkdownIt("gfm-like").render(text)


@pytest.mark.parametrize("name", [*TIMELINES, *(f"{name}.comparison" for name in COMPARISONS)])
def test_no_name_becomes_markup(analyses: Path, name: str) -> None:
    text = (analyses / f"{name}.md").read_text(encoding="utf-8")
    tokens = MarkdownIt("gfm-like").parse(text)
    inline = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in tokens + inline}
    assert not kinds & {"link_open", "image", "s_open", "fence", "code_block", "hr"}, kinds
    html = [token.content for token in tokens + inline if token.type in {"html_block", "html_inline"}]
    assert set(re.findall(r"<[^>]*>", "".join(html))) <= OURS
    # Emphasis is only ours, and ours does not cross what was recorded.
    strong = re.findall(r"<(?:strong|em)>(.*?)</(?:strong|em)>", MarkdownIt("gfm-like").render(text))
    assert all(re.fullmatch(r"[\w %.,():]+", words) for words in strong), strong
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)


@pytest.mark.parametrize("name", TIMELINES)
def test_headings_tables_and_boxes_are_those_of_the_report(analyses: Path, name: str) -> None:
    page = rendered(analyses, name)
    analysis = read(analyses, name)
    assert page.count("<h1>") == 1
    of_memory = sum(len(analysis.get(part, [])) for part in ("memory", "memory_attribution"))
    assert page.count("<h2>") == 5 + bool(analysis["gpu"]) + of_memory
    also = bool(analysis["slow_steps"]) + bool(analysis["considered"])
    assert page.count("<h3>") == len(analysis["findings"]) + also
    assert page.count("<details>") == page.count("</details>") == page.count("<summary>")
    for table in re.findall(r"<table>(.*?)</table>", page, re.DOTALL):
        widths = {len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)}
        assert len(widths) == 1


def test_what_is_shown_is_what_was_recorded(analyses: Path) -> None:
    page = rendered(analyses, "hostile")
    tags_out = re.sub(r"<!-- -->|</?(?:code|td|p|h\d)[^>]*>", "", page)
    for name in ["&lt;script&gt;alert(1)&lt;/script&gt;", "a|b|c", "`code` ``and`` ```more```", "someone@evil.example"]:
        assert name in tags_out, name
