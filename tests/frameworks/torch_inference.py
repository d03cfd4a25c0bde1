"""The workload of test_frameworks.py: a small transformer on the CPU, in eager mode, with scopes, steps and marks.
Prints a digest of its results, so that a run under the profiler can be compared with a run without."""

import hashlib
import threading

import torch
from inferscope import mark_event, scope, step

WIDTH, HEADS, LAYERS, WORDS = 64, 4, 3, 500


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True, dropout=0.0)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        with scope("embedding"):
            hidden = self.embedding(tokens)
        with scope("layers"):
            hidden = self.layers(hidden)
        with scope("head"):
            return self.head(hidden[:, -1])


def generate(model: Model, tokens: torch.Tensor, count: int) -> torch.Tensor:
    for _ in step(range(count), name="token"):
        following = model(tokens).argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, following], dim=1)
    return tokens


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = Model().eval()
    digests = {}

    def serve(number: int) -> None:
        prompt = torch.randint(0, WORDS, (2, 8), generator=torch.Generator().manual_seed(number))
        with torch.inference_mode(), scope("request", tags={"number": number}):
            tokens = generate(model, prompt, 12)
            mark_event("answered", metadata={"tokens": tokens.shape[1]})
        digests[number] = hashlib.sha256(str(tokens.tolist()).encode()).hexdigest()

    threads = [threading.Thread(target=serve, args=(number,), name=f"server-{number}") for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # And a data loader with worker processes: they are followed like any child.
    loader = torch.utils.data.DataLoader(torch.arange(32), batch_size=8, num_workers=2)
    for batch in step(loader, name="batch"):
        digests[int(batch[0]) + 100] = int(batch.sum())
    print(sorted(digests.items()))


if __name__ == "__main__":
    main()
