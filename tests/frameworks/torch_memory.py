"""Takes and gives back memory of PyTorch's CPU allocator, in several threads and a forked child, and says what it
holds itself. What it prints first is the same with and without a recording."""

import json
import os
import random
import sys
import threading

import inferscope
import torch


def of(tensor):
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def computed():
    """A small model's answer, and what PyTorch's own profiler saw of its memory."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    with torch.inference_mode(), torch.profiler.profile(profile_memory=True) as profiler:
        answer = model(torch.ones(16, 64))
    kept = sum(event.cpu_memory_usage for event in profiler.key_averages())
    return [round(float(answer.double().sum()), 9), kept]


def churn(seed, held):
    """Thousands of blocks of many sizes: some stay."""
    chosen = random.Random(seed)
    for turn in range(3000):
        tensor = torch.empty(chosen.randrange(1, 50_000), dtype=torch.uint8)
        if turn % 100 == 0:
            held.append(tensor)


print(json.dumps(computed()))
sys.stdout.flush()
threads = int(sys.argv[1])
inferscope.mark_event("begin")
held = [[] for _ in range(threads)]
workers = [threading.Thread(target=churn, args=(seed, held[seed])) for seed in range(threads)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
inferscope.mark_event("end")
blocks = dict(of(tensor) for each in held for tensor in each)
child = os.fork()
if child == 0:
    mine = torch.empty(123_457, dtype=torch.uint8)
    os._exit(0)
os.waitpid(child, 0)
held.clear()
tensor = None
inferscope.mark_event("empty")
print(json.dumps(blocks))
