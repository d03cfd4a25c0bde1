"""A small PyTorch model on the CPU, called so many times: what operator looks are taken of. Two arguments: how many
calls, and how many before that are not measured."""

import sys
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    *(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.LayerNorm(256), torch.nn.GELU()) for _ in range(6))
).eval()
batch = torch.randn(32, 256)


def calls(count: int) -> None:
    with torch.inference_mode():
        for _ in range(count):
            model(batch)


calls(int(sys.argv[2]))
wall, processor = time.perf_counter_ns(), time.process_time_ns()
calls(int(sys.argv[1]))
wall, processor = time.perf_counter_ns() - wall, time.process_time_ns() - processor
print(f"WALL_NS={wall} PROCESSOR_NS={processor}", flush=True)
