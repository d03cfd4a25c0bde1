"""What is known of an operator from its schema, once for each: what it writes into, whether it gives a view, whether
it draws random numbers."""

from __future__ import annotations

from typing import Any

# They read the ids of tokens, or copy them to where they are read.
_TAKES_IDS = frozenset(("embedding", "to", "_to_copy", "copy_"))
# They overwrite what they are given and do not read it. Everything else that writes in place reads as well.
_ONLY_WRITE = frozenset(("copy_", "fill_", "zero_"))


class Operator:
    __slots__ = ("call", "is_random", "is_view", "name", "only_writes", "takes_ids", "writes")

    def __init__(self, function: Any) -> None:
        schema = getattr(function, "_schema", None)
        # Others than plain operators have a way of their own to be called.
        self.call = function._op if type(function).__name__ == "OpOverload" else function
        self.name = str(schema.name if schema is not None else getattr(function, "_name", function))
        arguments = list(schema.arguments) if schema is not None else []
        # By place and by name: who calls it decides which it is.
        written = [(place, one.name) for place, one in enumerate(arguments) if _is_written(one)]
        self.writes = frozenset(key for pair in written for key in pair)
        given = [one.name for one in arguments if _is_written(one) and one.kwarg_only]
        plain = self.name.rpartition("::")[2]
        self.takes_ids = plain in _TAKES_IDS
        self.only_writes = plain in _ONLY_WRITE or bool(given)
        returns = list(schema.returns) if schema is not None else []
        self.is_view = not written and any(one.alias_info is not None for one in returns)
        # Without a schema nothing is known of it.
        tags = {str(tag).rpartition(".")[2] for tag in getattr(function, "tags", ())}
        self.is_random = schema is None or "nondeterministic_seeded" in tags


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write
