"""A small inference service in plain Python and NumPy: clients send text, the service tokenises, batches, computes
and turns the result back into text. One problem is planted, and the profile names its line.

    inferscope run examples/service.py              # the first finding names it
    inferscope run examples/service.py --fixed      # the same service without the problem
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import queue
import random
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

# Matrices this small are faster on one thread, and the profile shows this program rather than a waiting thread pool.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

try:
    from inferscope import mark_event, scope, step
except ImportError:  # The service does the same work with no profiler installed.

    class scope(contextlib.ContextDecorator):  # type: ignore[no-redef]
        def __init__(self, *_args: object, **_tags: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_error: object) -> None: ...

    step = scope  # type: ignore[misc,assignment]

    def mark_event(*_args: object, **_metadata: object) -> None: ...


WORDS = 10_000  # In the vocabulary.
WIDTH = 64  # Of the model.
LAYERS = 2
NEW_TOKENS = 4  # Generated for each request.
BATCH = 4
MAX_WAIT_S = 0.004  # For a batch to fill up.


def made_up_words(count: int) -> list[str]:
    syllables = ["ka", "lo", "mi", "ne", "ru", "sa", "te", "vo", "xi", "zu"]
    return ["".join(parts) for parts in itertools.islice(itertools.product(syllables, repeat=4), count)]


class Tokenizer:
    def __init__(self, words: list[str], fixed: bool) -> None:
        self.words = words
        self.vocabulary = self.build_vocabulary() if fixed else None

    def build_vocabulary(self) -> dict[str, int]:
        return dict(zip(sorted(self.words, key=str.casefold), range(len(self.words)), strict=True))

    def encode(self, text: str) -> list[int]:
        # The planted problem: without `--fixed`, each request builds the whole vocabulary again.
        vocabulary = self.vocabulary or self.build_vocabulary()
        tokens = []
        for word in text.lower().split():
            if word not in vocabulary:
                mark_event("unknown_word", metadata={"word": word})
            tokens.append(vocabulary.get(word, 0))
        return tokens

    def decode(self, tokens: list[int]) -> str:
        return " ".join(self.words[token] for token in tokens)


class Model:
    """A stack of dense layers that predicts the next token. It learned nothing; it costs what a small one costs."""

    def __init__(self) -> None:
        weights = np.random.default_rng(0)
        self.embedding = weights.standard_normal((WORDS, WIDTH), dtype=np.float32)
        self.layers = [weights.standard_normal((WIDTH, WIDTH), dtype=np.float32) / 14 for _ in range(LAYERS)]

    @scope("forward")
    def forward(self, tokens: np.ndarray) -> np.ndarray:
        hidden = self.embedding[tokens].mean(axis=1)
        for layer in self.layers:
            hidden = np.maximum(hidden @ layer, 0)
        return (hidden @ self.embedding.T).argmax(axis=1)

    def generate(self, prompts: list[list[int]]) -> list[list[int]]:
        width = max(len(prompt) for prompt in prompts)
        tokens = np.array([prompt + [0] * (width - len(prompt)) for prompt in prompts])
        for _ in range(NEW_TOKENS):
            following = self.forward(tokens)
            tokens = np.concatenate([tokens, following[:, None]], axis=1)
        return [row.tolist() for row in tokens]


@dataclass
class Request:
    text: str
    answer: Future[str] = field(default_factory=Future)


class Service:
    def __init__(self, fixed: bool) -> None:
        self.tokenizer = Tokenizer(made_up_words(WORDS), fixed)
        self.model = Model()
        self.waiting: queue.Queue[Request | None] = queue.Queue()
        self.thread = threading.Thread(target=self.serve, name="batcher")
        self.thread.start()

    def ask(self, text: str) -> str:
        request = Request(text)
        self.waiting.put(request)
        return request.answer.result()

    def close(self) -> None:
        self.waiting.put(None)
        self.thread.join()

    def next_batch(self) -> list[Request]:
        """Up to BATCH requests; empty when the service closes."""
        first = self.waiting.get()
        if first is None:
            return []
        batch, deadline = [first], time.monotonic() + MAX_WAIT_S
        while len(batch) < BATCH:
            try:
                request = self.waiting.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if request is None:
                self.waiting.put(None)  # Serve what is there, then close.
                break
            batch.append(request)
        return batch

    def serve(self) -> None:
        while batch := self.next_batch():
            with step("batch", tags={"size": len(batch)}):
                with scope("tokenize"):
                    prompts = [self.tokenizer.encode(request.text) for request in batch]
                with scope("compute"):
                    outputs = self.model.generate(prompts)
                with scope("detokenize"):
                    for request, tokens in zip(batch, outputs, strict=True):
                        request.answer.set_result(self.tokenizer.decode(tokens))


def client(service: Service, number: int, requests: int, words: list[str]) -> None:
    chance = random.Random(number)
    for _ in range(requests):
        text = " ".join(chance.choices([*words[:500], "Ünknown"], k=12))
        with scope("request", tags={"client": number}):
            service.ask(text)


def main() -> None:
    options = argparse.ArgumentParser(description="A small inference service with one planted problem.")
    options.add_argument("--requests", type=int, default=2400, help="how many in all")
    options.add_argument("--clients", type=int, default=4)
    options.add_argument("--fixed", action="store_true", help="leave the planted problem out")
    chosen = options.parse_args()

    began = time.monotonic()
    service = Service(chosen.fixed)
    each = max(1, chosen.requests // chosen.clients)
    words = service.tokenizer.words
    clients = [
        threading.Thread(target=client, args=(service, number, each, words), name=f"client-{number}")
        for number in range(chosen.clients)
    ]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    service.close()
    took = time.monotonic() - began
    print(f"{each * chosen.clients} requests in {took:.1f} s, {each * chosen.clients / took:.0f} a second")


if __name__ == "__main__":
    main()
