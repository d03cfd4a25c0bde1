"""A small model called in a loop of steps, in the way that the first argument says. Prints what came of it, to the
last bit."""

import copy
import os
import sys
import threading
import traceback

import torch
from inferscope import _ops, step

way = sys.argv[1]
torch.manual_seed(0)
torch.set_num_threads(1)
STEPS = 24


def largest(rows):
    """Element by element."""
    best = 0.0
    for row in rows:
        for at in range(row.shape[0]):
            value = row[at].item()
            best = value if value > best else best
    return best


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(128, 128)
        self.second = torch.nn.Linear(128, 128)
        self.weight = torch.nn.Parameter(torch.randn(1024, 1024))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(30))
        self.history = None
        self.reader = torch.nn.Sequential(torch.nn.Embedding(100, 128, padding_idx=0), torch.nn.Linear(128, 128))

    def forward(self, x):
        y = torch.relu(self.first(x))
        if way == "mask":
            y = y + torch.triu(torch.ones(384, 384), 1)[:32, :128]
        elif way == "weights":
            y = y + (y.double() @ self.weight.to(torch.float64)[:128, :128]).float()
        elif way == "cat":
            new = y.repeat(32, 1)
            self.history = new if self.history is None else torch.cat([self.history, new])
            y = y + self.history.mean()
        elif way == "rows":
            y = torch.stack([torch.relu(self.second(row)) * 2 for row in y])
        elif way == "chain":
            h = y[:, :32]
            for layer in self.layers:
                h = torch.tanh(layer(h))
            y = y + h.sum()
        elif way == "elements":
            y = y + largest(y[:8])
        elif way == "padding":
            # Texts of 24 to 31 ids, padded to 256.
            ids = torch.zeros(8, 256, dtype=torch.long)
            for number in range(8):
                ids[number, : 24 + number] = 1 + torch.arange(24 + number)
            y = y + self.reader(ids).sum()
        elif way == "churn":
            y = y.repeat(32, 1).double().float()[:32]
        elif way == "vmap":
            y = torch.vmap(lambda row: torch.relu(row) * 2)(y)
        return self.second(y)


class Prepared:
    """Inputs that a model of their own prepares: between the steps, and a few times before the first."""

    def __init__(self, count):
        self.count, self.scale = count, torch.nn.Linear(128, 128)

    def __iter__(self):
        for number in range(self.count):
            for _ in range(5):
                self.scale(torch.ones(32, 128))
            yield number


class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    """A mode of the program's own."""

    seen = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Counting.seen += 1
        return function(*args, **(kwargs or {}))


def run(model, count=STEPS, seed=1):
    generator = torch.Generator().manual_seed(seed)
    digest, mode = [], Counting()
    for number in step(Prepared(count) if way == "between" else range(count), name="request"):
        x = torch.randn(32, 128, generator=generator)
        if way == "overlapping" and number == 4:
            mode.__enter__()
        if way == "fails":
            try:
                model(x) @ torch.ones(3, 3)
            except RuntimeError:
                digest.append(traceback.format_exc())
        result = model(x)
        if way == "training":
            result.square().sum().backward()
            digest.append(model.first.weight.grad.double().sum().item().hex())
        digest.append(result.detach().double().sum().item().hex())
        if way == "overlapping" and number == 9:
            mode.__exit__(None, None, None)
    return digest


model = Model()
if way == "compile":
    model = torch.compile(model, backend="eager")
elif way == "script":
    model = torch.jit.script(torch.nn.Sequential(model.first, torch.nn.ReLU(), model.second))
if way == "training":
    print(run(model))
elif way == "profiler":
    with torch.no_grad(), torch.profiler.profile() as profile:
        print(run(model))
    print(sum(event.count for event in profile.key_averages() if event.key.startswith("aten::")))
elif way == "mode":
    with torch.no_grad(), Counting():
        print(run(model), Counting.seen)
elif way in ("capture", "capture later"):
    # As it looks from outside while a CUDA graph is captured.
    turns = iter([False] * 4 if way == "capture later" else [])
    torch.cuda.is_initialized = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: next(turns, True)
    with torch.no_grad():
        print(run(model))
elif way == "trace":
    with torch.no_grad():
        run(model, 4)
        print(torch.jit.trace(model, torch.ones(32, 128)).graph, run(model))
elif way == "threads":
    found = [None, None]

    def work(place):
        with torch.no_grad():
            found[place] = run(model, seed=place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(found)
elif way == "replicas":
    # As DataParallel has it: in every step a new thread for each replica, which calls it once and ends.
    replicas = [model, copy.deepcopy(model)]
    parts = torch.ones(32, 128).chunk(2)

    @torch.no_grad()
    def call(place):
        results[place] = replicas[place](parts[place]).double().sum().item().hex()

    for _ in step(range(STEPS), name="request"):
        results = [None, None]
        threads = [threading.Thread(target=call, args=(place,)) for place in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        with torch.no_grad():
            print(results, model(parts[0]).sum().item().hex())
elif way == "short threads":
    # Each ends in the middle of what would be a look: no next turn ever comes on it.
    for number in range(6):
        thread = threading.Thread(target=lambda seed=number: print(run(model.requires_grad_(False), 5, seed)))
        thread.start()
        thread.join()
        # Nothing of ours is left to be freed when the process ends.
        print(_ops._State.look, _ops._State.left)
    print(run(model, 200))
elif way == "entering":
    # Threads that enter a step and end in it: nothing ever leaves it.
    def enter():
        step("request").__enter__()
        with torch.no_grad():
            print(model(torch.ones(32, 128)).sum().item().hex())

    for _ in range(6):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    with torch.no_grad():
        print(run(model))
elif way == "emit_nvtx":
    # It synchronises the device first, which is not here.
    torch.cuda.synchronize = lambda: None
    small = torch.nn.Sequential(model.first, torch.nn.ReLU(), model.second)
    with torch.inference_mode(), torch.autograd.profiler.emit_nvtx(record_shapes=True):
        for number in range(STEPS):
            print(small(torch.full((32, 128), number / STEPS)).double().sum().item().hex())
elif way == "unmarked rows":
    scorer = torch.nn.Linear(128, 8)
    with torch.inference_mode():
        for number in range(STEPS):
            y = model(torch.full((16, 128), number / STEPS))
            print(torch.stack([scorer(row) for row in y]).double().sum().item().hex())
elif way == "fork":
    with torch.no_grad():
        for number in step(range(12), name="request"):
            model(torch.ones(32, 128))
            if number == 4 and os.fork() == 0:
                print(torch._C._len_torch_dispatch_stack(), run(model, 3), flush=True)
                os._exit(0)
            if number == 4:
                os.wait()
        print(run(model))
else:
    with torch.inference_mode():
        print(run(model))
print(torch._C._len_torch_dispatch_stack())
