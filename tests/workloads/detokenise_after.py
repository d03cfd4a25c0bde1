"""Planted: after the last kernel the answer is put together in plain Python, letter by letter, while the GPU has
nothing to do.
Fix: pieces of text from a table."""

from __future__ import annotations

from frame import Workload, main
from parts import encoder, tokens

EXPECT = "postprocess-tail"
LETTERS = "etaoinshrdlucmfw"


def piece(token: int) -> str:
    letters = []
    while token:
        letters.append(LETTERS[token % 16])
        token //= 16
    return "".join(letters)


class DetokeniseAfter(Workload):
    STEPS = 60

    def setup(self) -> None:
        self.model, self.tokens = encoder(self), tokens(self)
        self.answer = self.tokens.flatten().tolist() * self.size(2, 1)
        self.table = [piece(token) for token in range(8192)]

    def planted(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()
        " ".join(piece(token) for token in self.answer)

    def fixed(self) -> None:
        self.model(self.tokens).argmax(-1).tolist()
        " ".join([self.table[token] for token in self.answer])


if __name__ == "__main__":
    main(DetokeniseAfter)
