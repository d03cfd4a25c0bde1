"""The workload of the GPU test and benchmark: small PyTorch inference steps on CUDA, with scopes and steps.
Prints a digest of its results and what its loop took, in nanoseconds."""

import hashlib
import sys
import time

import torch

try:
    from inferscope import scope, step
except ImportError:  # For the benchmark's run without us.
    from contextlib import nullcontext

    def scope(_name):
        return nullcontext()

    def step(iterable, name):
        return iterable


def main() -> None:
    steps = int(sys.argv[1])
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    layers = [torch.nn.Linear(512, 512) for _ in range(12)]
    model = torch.nn.Sequential(*[module for layer in layers for module in (layer, torch.nn.GELU())]).cuda().eval()
    batch = torch.randn(16, 512, device="cuda")
    with torch.inference_mode():
        for _ in range(20):  # CUDA starts up, kernels load.
            model(batch)
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        for _ in step(range(steps), name="inference"):
            with scope("forward"):
                result = model(batch)
            with scope("to host"):
                total = result.sum().item()
        took = time.perf_counter_ns() - began
    digest = hashlib.sha256(result.cpu().numpy().tobytes()).hexdigest()
    print(f"{digest} {total:.6f} WALL_NS={took}", flush=True)


main()
