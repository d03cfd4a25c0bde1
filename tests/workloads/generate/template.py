"""Source text with slots: a line `#[name]` is replaced by the lines of that slot at its indentation, `<<name:default>>`
within a line by an expression. Slots that nobody fills vanish."""

from __future__ import annotations

import re
from collections.abc import Mapping

LINE = re.compile(r"^([ ]*)#\[([a-z_]+)\]$")
INLINE = re.compile(r"<<([a-z_]+):(.*?)>>")

# Functions and classes, which stand apart.
TOP_LEVEL = ("code", "model")

Slots = dict[str, str]


def merged(*parts: Mapping[str, str]) -> Slots:
    """Slots of several owners: what two of them put into the same one stands in this order."""
    whole: Slots = {}
    for part in parts:
        for name, text in part.items():
            between = "\n\n\n" if name in TOP_LEVEL else "\n"
            whole[name] = f"{whole[name]}{between}{text}".strip("\n") if name in whole else text.strip("\n")
    return whole


def filled(text: str, slots: Mapping[str, str]) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        if found := LINE.match(line):
            inner = slots.get(found[2], "")
            if inner:
                # A slot's text may have slots of its own.
                inner = filled(inner, {name: value for name, value in slots.items() if name != found[2]})
            lines += [f"{found[1]}{one}" if one.strip() else "" for one in inner.splitlines()]
        else:
            lines.append(INLINE.sub(lambda found: slots.get(found[1], found[2]), line))
    return "\n".join(lines)


def tidy(source: str) -> str:
    """No more than two empty lines in a row, and one where a slot between two was empty."""
    source = re.sub(r"\n{4,}", "\n\n\n", source)
    return re.sub(r"\n{3,}(?=SEED)", "\n\n", source).strip("\n") + "\n"
