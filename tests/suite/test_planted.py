"""What is planted is what the recipe says: unless repeated work is the fault, two requests do not compute the same, and
names of two faults in one program do not meet. By the programs' text; tests/frameworks runs them."""

from __future__ import annotations

import ast
import itertools
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workloads"))

from generate.faults import Fault
from generate.recipe import FAULTS, PAIRED

REPEATED = "repeated-work"
# Slots that run once, and those that run in every request.
ONCE = ("setup", "inputs_made", "ready", "build", "begin", "flags")
EACH = ("before", "inputs", "stage_in", "forward", "after", "tail", "activation", "each_token", "after_layer")
# What stays the same in every request and belongs so: no input of what is planted.
PARAMETERS = {
    "weights": "parameters of the experts",
    "words": "the weights of the unaligned products",
    "refine": "layers",
    "pieces": "a table that texts are looked up in",
    "candidates": "cut to another length in every request",
    "parameters": "those of the JAX model",
    "pictures": "an iterator, whose pictures follow their number",
    "asked_state": "what the graph reads; each request is copied into it",
    "end_state": "what the graph writes",
}


def tree(fault: Fault, slots: tuple[str, ...]) -> ast.Module:
    return ast.parse("\n".join(fault.slots[name].strip("\n") for name in slots if name in fault.slots))


def own(node: ast.AST) -> str | None:
    """The name of an attribute of the service."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def written(part: ast.AST) -> set[str]:
    return {
        name
        for node in ast.walk(part)
        if (name := own(node)) and isinstance(node.ctx, ast.Store)  # type: ignore[attr-defined]
    }


def unchanging(fault: Fault) -> Iterator[str]:
    """What is made once and read in requests, neither by their number nor called."""
    made, asked = written(tree(fault, ONCE)), tree(fault, EACH)
    fine = set()
    for node in ast.walk(asked):
        if isinstance(node, ast.Subscript) and "number" in ast.unparse(node.slice):
            fine.add(node.value)
        elif isinstance(node, ast.Call):
            fine.add(node.func)
        elif isinstance(node, ast.Attribute) and node.attr != "to":
            fine.add(node.value)  # `self.log.info`: it is `info` that is called. But a tensor is copied by `to`.
    changed = written(asked)
    for node in ast.walk(asked):
        name = own(node)
        if name in made and name not in changed and node not in fine and name not in PARAMETERS:
            yield f"{fault.name}: self.{name}"


class Planted(unittest.TestCase):
    def test_no_input_of_what_is_planted_is_the_same_in_every_request(self) -> None:
        for fault in FAULTS:
            if REPEATED not in fault.accepted:
                with self.subTest(fault.name):
                    self.assertEqual(list(unchanging(fault)), [])

    def test_an_input_that_never_changes_is_noticed(self) -> None:
        slots = {"setup": "self.asked = torch.randn(4)", "after": "y = y + self.model(self.asked)"}
        self.assertEqual(list(unchanging(Fault("one", "", "launch-bound", slots))), ["one: self.asked"])
        slots["after"] = "y = y + self.model(self.asked[number % 4])"
        self.assertEqual(list(unchanging(Fault("one", "", "launch-bound", slots))), [])

    def test_where_repeated_work_is_planted_it_is_accepted(self) -> None:
        named = {fault.name for fault in FAULTS if REPEATED in fault.accepted}
        self.assertEqual(named, {"mask", "weights", "made on the host"})

    def test_two_faults_of_one_program_do_not_share_a_name(self) -> None:
        for one, other in itertools.combinations(PAIRED, 2):
            shared = attributes(one) & attributes(other)
            self.assertEqual(shared, set(), f"{one.name} and {other.name}")
            hidden = (functions(one) & variables(other)) | (functions(other) & variables(one))
            self.assertEqual(hidden, set(), f"{one.name} and {other.name}")


def attributes(fault: Fault) -> set[str]:
    return written(tree(fault, (*ONCE, *EACH)))


def functions(fault: Fault) -> set[str]:
    return {node.name for node in tree(fault, ("code",)).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def variables(fault: Fault) -> set[str]:
    """Names that a request sets, which hide a function of the same name."""
    nodes = ast.walk(tree(fault, EACH))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


if __name__ == "__main__":
    unittest.main()
