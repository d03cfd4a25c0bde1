"""What several programs of the suite are built from: models with random weights that keep a large GPU busy for some
milliseconds, a slow tokeniser, and what a server writes down about its requests."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1] / "gpu" / "workloads"))

from frame import Workload
from model import Block


class Encoder(nn.Module):
    """A transformer over tokens, with a small head."""

    def __init__(self, width: int, layers: int, heads: int, words: int = 8192, causal: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList([Block(width, heads, causal) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, -1])


class Vision(nn.Module):
    """A vision transformer: patches, blocks, classes."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.Sequential(*(Block(width, heads, False) for _ in range(layers)))
        self.head = nn.Linear(width, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.layers(x).mean(1))


def encoder(work: Workload, layers: int = 4, width: int = 2048) -> Encoder:
    model = Encoder(work.size(width, 64), work.size(layers, 2), work.size(width // 128, 4))
    return model.to(work.dtype).eval()


def vision(work: Workload, layers: int = 4, width: int = 1024) -> Vision:
    return Vision(work.size(width, 64), work.size(layers, 2), work.size(width // 64, 4)).to(work.dtype).eval()


def mlp(work: Workload, width: int = 4096, layers: int = 3) -> nn.Sequential:
    width = work.size(width, 64)
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*parts).to(work.dtype).eval()


def tokens(work: Workload, batch: int = 8, length: int = 512) -> torch.Tensor:
    return torch.randint(0, 8192, (work.size(batch, 2), work.size(length, 16)))


def text(work: Workload, words: int = 6000) -> str:
    choose = random.Random(1)
    letters = "etaoinshrdlucm"
    made = ("".join(choose.choices(letters, k=choose.randint(2, 9))) for _ in range(work.size(words, 200)))
    return " ".join(made)


WORDS = re.compile(r"\w+|[^\w\s]")


def tokenise(said: str) -> list[int]:
    """Longest match first, in plain Python, as small tokenisers do it."""
    found: list[int] = []
    for word in WORDS.findall(said):
        start = 0
        while start < len(word):
            end = min(len(word), start + 4)
            while end > start + 1 and hash_of(word[start:end]) % 3:
                end -= 1
            found.append(hash_of(word[start:end]) % 8192)
            start = end
    return found


def hash_of(piece: str) -> int:
    value = 7
    for letter in piece:
        value = (value * 31 + ord(letter)) & 0xFFFFFF
    return value


def book(count: int) -> dict[int, list[str]]:
    """What a scheduler notes about its requests: some host work for every `count`."""
    return {number: [str(number), str(number * 7), "running"] for number in range(count)}
