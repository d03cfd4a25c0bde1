"""Puts a recipe together as the source of one program that stands by itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from generate import frame
from generate.library import JAX_FRAME
from generate.recipe import HEALTHY, Recipe
from generate.template import Slots, filled, merged, tidy

# A fault's text stands instead of the family's.
REPLACED = ("activation", "forward", "result", "layout", "mask")
# Results of planted and fixed, relative to the largest value: what the dtype's rounding comes to after some layers.
TOLERANCES = {"float32": 2e-3, "float16": 1e-2, "bfloat16": 5e-2}
SWITCHES = ("self.options.fixed", "self.options.also_fixed")


def source(recipe: Recipe, marks: Mapping[str, Slots] = frame.MARKS, main: str = frame.MAIN) -> str:
    """`marks` have the loop of requests in them, `main` what stands around it."""
    family = dict(recipe.family.slots)
    parts: list[Slots] = []
    for fault, switch in zip(recipe.faults, SWITCHES, strict=False):
        words = {"FIX": switch, "ROW": recipe.family.row}
        text = {
            name: re.sub(r"\b(FIX|ROW)\b", lambda found, words=words: words[found[0]], value)
            for name, value in fault.slots.items()
        }
        for name in REPLACED:
            if name in text:
                family.pop(name, None)
        parts.append(text)
    slots = merged(frame.COMPANY[recipe.company], marks[recipe.marks], family, *parts)
    slots |= imports(slots.get("imports", ""))
    slots["main"] = filled(main, {"loop": slots["loop"], "serving": slots.get("serving", frame.SERVING)})
    slots["constants"] = f"{constants(recipe, slots['main'])}\n{slots.get('constants', '')}"
    if recipe.small and recipe.family.frame == "torch":
        # Tiny operations only wait for each other's threads.
        slots = merged(slots, {"flags": "torch.set_num_threads(1)"})
    text = JAX_FRAME if recipe.family.frame == "jax" else frame.TORCH
    for name, value in {
        "#DOC#": described(recipe),
        "#SEED#": str(recipe.seed),
        "#DEVICE#": recipe.device,
        "#DTYPE#": recipe.dtype,
    }.items():
        text = text.replace(name, value)
    whole = filled(text, slots)
    for line, used in (("import torch.nn.functional as F\n", r"\bF\."), ("from torch import nn\n", r"\bnn\.(?!f)")):
        if not re.search(used, whole):
            whole = whole.replace(line, "")
    return tidy(whole)


# What every frame uses.
IMPORTS = ["import argparse", "import json", "import time", "from types import SimpleNamespace"]


def imports(wanted: str) -> Slots:
    """The standard library's apart from the others, each once and in order."""

    def module(line: str) -> str:
        return line.split()[1]

    lines = sorted({*IMPORTS, *wanted.splitlines()}, key=lambda line: (line.startswith("from "), module(line)))
    standard = [line for line in lines if module(line).split(".")[0] in sys.stdlib_module_names]
    return {"stdlib": "\n".join(standard), "imports": "\n".join(line for line in lines if line not in standard)}


def constants(recipe: Recipe, main: str) -> str:
    tolerances = [fault.tolerance for fault in recipe.faults if fault.tolerance]
    found = {
        **recipe.sizes,
        "STEPS": min((fault.steps for fault in recipe.faults if fault.steps), default=60),
        # However slow the first one is.
        "LEAST_STEPS": 12,
        "WARM": recipe.warm,
        # How many rounds a request has that could be taken for steps, too.
        "INNER": recipe.sizes[recipe.family.inner] if recipe.family.inner else 1,
        "TOLERANCE": max([TOLERANCES[recipe.dtype], *tolerances]),
    }
    # A loop of so many requests has no others.
    unused = [name for name in ("STEPS", "LEAST_STEPS", "INNER") if not re.search(rf"\b{name}\b", main)]
    return "\n".join(f"{name} = {value}" for name, value in found.items() if name not in unused)


def described(recipe: Recipe) -> str:
    planted = "; ".join(fault.doc for fault in recipe.faults if fault.expect != HEALTHY)
    healthy = "; ".join(fault.doc for fault in recipe.faults) or "nothing is planted"
    return f"{recipe.family.doc} Planted: {planted or f'{HEALTHY}, {healthy}'}."
