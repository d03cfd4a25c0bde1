"""The workload of test_layers.py: models called in the ways in which people call them, `torch_layers.py <way>`. Prints
a digest of the results."""

import copy
import gc
import hashlib
import sys
import threading
import weakref

import torch
from torch import nn
from torch.nn.modules import module as hooks


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.attention(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Fragile(nn.Module):
    """Fails in its middle, and goes on without that."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.broken, self.after = nn.Linear(16, 16), Broken(), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x)
        try:
            self.broken(x)
        except ValueError:
            x = x + 1
        return self.after(x)


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError(str(self.inner(x).shape))


def eager(x: torch.Tensor) -> torch.Tensor:
    model = Model()
    for _ in range(50):
        x = x + model(x).mean()
    # Whatever looked at the first calls is gone.
    print(len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks), threading.active_count())
    if sys.version_info >= (3, 12):
        code = nn.Module.__call__.__code__
        print([sys.monitoring.get_local_events(tool, code) for tool in range(6) if sys.monitoring.get_tool(tool)])
    return x


def threads(x: torch.Tensor) -> torch.Tensor:
    model, out = Model(), {}

    def work(number: int) -> None:
        with torch.inference_mode():  # Each thread's own.
            out[number] = [model(x + number) for _ in range(3)][-1]

    all_threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    return torch.cat([out[number] for number in sorted(out)])


def exceptions(x: torch.Tensor) -> torch.Tensor:
    model = Fragile()
    for _ in range(2):
        x = model(x)
        try:
            model.broken(x)
        except ValueError:
            x = x + 1
    return model(x)


def outside(x: torch.Tensor) -> torch.Tensor:
    """A layer by itself, a model, a layer of that model from outside, a second model, and one made on the fly."""
    x = nn.ReLU()(x)
    model = Model()
    model(x)
    x = model.layers[1](x)
    second = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
    return second(x)


class Target(Model):
    pass


def drafted(x: torch.Tensor) -> torch.Tensor:
    """A draft model some times, then the model that it drafts for."""
    draft, target = Model(), Target()
    for _ in range(20):
        for _ in range(5):
            x = x + draft(x).mean()
        x = x + target(x).mean()
    return x


def failing(x: torch.Tensor) -> torch.Tensor:
    """Fails at every call, in its middle."""
    model = Broken()
    for _ in range(100):
        try:
            model(x)
        except ValueError:
            x = x + 1
    print(len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks))
    return x


def copied(x: torch.Tensor) -> torch.Tensor:
    """Copied while it is watched, and let go."""
    model = Model()
    x = x + model(x).mean()
    other = copy.deepcopy(model)
    print(sorted(vars(other)) == sorted(vars(model)), [len(one._forward_hooks) for one in other.modules()])
    x = x + other(x).mean()
    gone = weakref.ref(other)
    del other
    gc.collect()
    print(gone())
    return x


def compiled(x: torch.Tensor) -> torch.Tensor:
    from torch._dynamo.utils import counters

    model = Model()
    fast = torch.compile(model, backend="eager")
    for _ in range(20):
        x = x + fast(x).mean()
    print(dict(counters["frames"]), dict(counters["graph_break"]))
    return x


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with torch.inference_mode():
        ways = (eager, threads, exceptions, outside, drafted, failing, copied, compiled)
        work = {one.__name__: one for one in ways}[sys.argv[1]]
        out = work(torch.randn(3, 16))
    print(hashlib.sha256(out.numpy().tobytes()).hexdigest())


main()
