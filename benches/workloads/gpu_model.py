"""The workload of the GPU benchmark: one model with random weights, run for some seconds, every step timed. Says what
it took as one line of JSON, at the very end, with the time of that end.

    gpu_model.py <model> <seconds> [plain | torch-cuda | torch-all] [folder for the profiler's file]"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

# Asked of the driver's files: PyTorch's own question would start CUDA, and a process that did cannot fork.
CUDA = os.path.exists("/proc/driver/nvidia/version") and torch.version.cuda is not None
DEVICE = "cuda" if CUDA else "cpu"
WARM_UP = 12


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def gpt2() -> Callable[[], None]:
    """Decodes token by token with a cache, batch 1; a new prompt every 64 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(DEVICE).eval()
    prompt = torch.randint(0, 50257, (1, 16), device=DEVICE)
    state: dict[str, Any] = {"left": 0}

    def step() -> None:
        if not state["left"]:
            state.update(left=64, past=None, token=prompt)
        out = model(state["token"], past_key_values=state["past"], use_cache=True)
        state["past"], state["token"] = out.past_key_values, out.logits[:, -1:].argmax(-1)
        state["left"] -= 1
        state["token"].item()

    return step


def bert_model() -> tuple[Any, torch.Tensor]:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig()).to(DEVICE).eval(), torch.randint(0, 30000, (16, 128), device=DEVICE)


def bert() -> Callable[[], None]:
    model, tokens = bert_model()

    def step() -> None:
        model(tokens)
        wait()

    return step


def bert_graph() -> Callable[[], None]:
    model, tokens = bert_model()
    if not CUDA:
        return lambda: model(tokens)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(tokens)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(tokens)

    def step() -> None:
        graph.replay()
        wait()

    return step


def resnet50() -> Callable[[], None]:
    """Batches come from the host: pinned, as a loader makes them; results go back."""
    from torchvision.models import resnet50 as build

    model = build(weights=None).to(DEVICE).eval()
    images = torch.randn(64 if CUDA else 2, 3, 224, 224)
    images = images.pin_memory() if CUDA else images

    def step() -> None:
        model(images.to(DEVICE, non_blocking=True)).cpu()

    return step


def mlp() -> Callable[[], None]:
    """Two hundred tiny layers: nothing but launches."""
    layers = [part for _ in range(200) for part in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
    model, x = torch.nn.Sequential(*layers).to(DEVICE).eval(), torch.randn(8, 64, device=DEVICE)

    def step() -> None:
        model(x)
        wait()

    return step


def adds() -> Callable[[], None]:
    """Four hundred additions of a few numbers: as many launches a second as PyTorch can do."""
    x = torch.zeros(8, device=DEVICE)

    def step() -> None:
        for _ in range(400):
            x.add_(1.0)
        wait()

    return step


ALL = (gpt2, bert, bert_graph, resnet50, mlp, adds)


def memory() -> dict[str, int]:
    """What this process has in memory, in bytes."""
    found = {}
    with open("/proc/self/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith(("VmRSS", "VmHWM", "RssAnon", "RssFile", "RssShmem")):
                found[line.partition(":")[0]] = int(line.split()[1]) << 10
    return found


def run(step: Callable[[], None], seconds: float) -> list[int]:
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - began)
    return times


def profiled(step: Callable[[], None], seconds: float, mode: str, folder: str) -> tuple[list[int], dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU] if mode == "torch-all" or not CUDA else []
    kinds += [ProfilerActivity.CUDA] if CUDA else []
    profiler = profile(activities=kinds)
    profiler.start()
    step()  # The profiler's own start-up falls into its first step.
    times = run(step, seconds)
    ended = time.perf_counter()
    profiler.stop()
    stopped = time.perf_counter()
    file = os.path.join(folder, "kineto.json")
    profiler.export_chrome_trace(file)
    exported = time.perf_counter()
    with open(file, encoding="utf-8", errors="replace") as text:
        gpu = sum('"cat": "kernel"' in line or '"cat": "gpu_mem' in line or '"cat": "cuda_' in line for line in text)
    told = {
        "stop_s": stopped - ended,
        "export_s": exported - stopped,
        "file_bytes": os.path.getsize(file),
        "gpu_events": gpu,
    }
    os.unlink(file)
    return times, told


def main(name: str, seconds: str, mode: str = "plain", folder: str = ".") -> None:
    torch.manual_seed(0)
    more: dict[str, Any] = {}
    with torch.inference_mode():
        step = {work.__name__: work for work in ALL}[name.replace("-", "_")]()
        for _ in range(WARM_UP if CUDA else 1):
            step()
        wait()
        before = memory()
        if mode == "plain":
            times = run(step, float(seconds))
        else:
            times, more = profiled(step, float(seconds), mode, folder)
    ordered = sorted(times)
    said = {
        "steps": len(times),
        "median_ns": int(statistics.median(times)),
        "mean_ns": sum(times) // len(times),
        "p10_ns": ordered[int(0.1 * (len(ordered) - 1))],
        "p90_ns": ordered[int(0.9 * (len(ordered) - 1))],
        "memory_before": before,
        "memory": memory(),
        **more,
    }
    said["end_ns"] = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
