"""The habits of ARCHITECTURE.md that a machine can check: no path of anybody's machine, every source file says in
its first lines what it is for, no placeholder and no switched-off test, no sentence where codes are handed on. Part of
`make lint`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The home or the checkout of one person has no place in the repository.
MACHINE_PATH = re.compile(r"(?<![\w.~}])/(?:root|work|home/[a-z][\w-]*|Users/\w+)/[\w.]")
UNFINISHED = re.compile(
    r"\b(?:TODO|FIXME|XXX|HACK)\b|\btodo!\(|\bunimplemented!\(|#\[ignore|pytest\.mark\.(?:skip|xfail)"
)
VAGUE = re.compile(r"(?:^|/)(?:utils?|common|helpers?|managers?)(?:\.\w+)?(?:/|$)")
MOST_LINES = 400
# Between crates go codes and numbers: what a person reads is written in `diagnosis` and `report`. A name of a few
# words is no sentence; what cannot be parsed is said where it is parsed.
WITHOUT_SENTENCES = ("crates/analysis/src/", "crates/replay/src/")
MAY_SAY = {"crates/analysis/src/memory/who.rs", "crates/replay/src/expression.rs"}
TESTS = re.compile(r"#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{")
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
WORD = re.compile(r"[A-Za-z][a-z']+")
MOST_WORDS = 5


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return [Path(name) for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def opens_with_a_sentence(file: Path, text: str) -> bool:
    if file.suffix == ".rs":
        return text.startswith("//!")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return not lines or lines[0].lstrip("r").startswith('"""')


def sentences(file: Path, text: str) -> list[str]:
    """Texts of many words where only codes are handed on. Tests stand at the end of a file."""
    if not str(file).startswith(WITHOUT_SENTENCES) or str(file) in MAY_SAY or "tests" in str(file):
        return []
    found = []
    for number, line in enumerate(TESTS.split(text, maxsplit=1)[0].splitlines(), 1):
        literals = [] if line.lstrip().startswith("//") else TEXT.findall(line)
        for literal in literals:
            if " " in literal and len(WORD.findall(re.sub(r"\{[^}]*\}", "", literal))) > MOST_WORDS:
                found.append(f"{file}:{number}: a sentence; hand on a code, and write it in diagnosis: {literal[:60]}")
    return found


def faults(file: Path) -> list[str]:
    if VAGUE.search(str(file)):
        return [f"{file}: a name that says nothing (house rule: no utils, common, helpers, manager)"]
    try:
        text = (ROOT / file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            found.append(f"{file}:{number}: a path of one machine: {line.strip()[:80]}")
        if file.suffix in {".rs", ".py", ".pyi"} and file.name != "house_rules.py" and UNFINISHED.search(line):
            found.append(f"{file}:{number}: unfinished or switched off: {line.strip()[:80]}")
    found += sentences(file, text)
    if file.suffix in {".rs", ".py"}:
        if not opens_with_a_sentence(file, text):
            found.append(f"{file}:1: does not open with what it is for")
        if (lines := text.count("\n")) > MOST_LINES:
            found.append(f"{file}: {lines} lines are more than one sitting (at most {MOST_LINES})")
    return found


def main() -> int:
    files = tracked()
    found = [fault for file in files for fault in faults(file)]
    print("\n".join(found) if found else f"house rules: {len(files)} files, no fault")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
