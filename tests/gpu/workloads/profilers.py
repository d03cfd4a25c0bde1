"""Two profilers in one process, and recording that begins late: `profilers.py inside|outside|late`. Prints what
PyTorch's profiler saw, as one line of JSON."""

from __future__ import annotations

import json
import sys
import warnings

import inferscope
import torch
from torch.profiler import ProfilerActivity, profile

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
ACTIVITIES = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if CUDA else [])]
ADDITIONS = 100


def work(x: torch.Tensor) -> None:
    for _ in range(ADDITIONS):
        x.add_(1)
    if CUDA:
        torch.cuda.synchronize()


def on_device(prof: profile) -> int:
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in prof.events() or [])


def inside() -> dict[str, object]:
    """PyTorch's profiler is started while we record."""
    x = torch.zeros(1024, device=DEVICE)
    work(x)
    with profile(activities=ACTIVITIES) as prof:
        work(x)
    work(x)
    return {"before": ADDITIONS, "theirs": on_device(prof), "result": x[0].item()}


def outside() -> dict[str, object]:
    """We are started while PyTorch's profiler records."""
    x = torch.zeros(1024, device=DEVICE)
    with warnings.catch_warnings(record=True) as told, profile(activities=ACTIVITIES) as prof:
        warnings.simplefilter("always")
        work(x)
        started = inferscope.start(output=sys.argv[2])
        work(x)
        report = inferscope.stop()
    said = [str(one.message) for one in told]
    return {"theirs": on_device(prof), "started": started, "report": report, "said": said, "result": x[0].item()}


def late() -> dict[str, object]:
    """CUDA is in use before we start."""
    x = torch.zeros(1024, device=DEVICE)
    work(x)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        started = inferscope.start(output=sys.argv[2])
        work(x)
        report = inferscope.stop()
    work(x)
    said = [str(one.message) for one in told]
    return {"recorded": ADDITIONS, "started": started, "report": report, "said": said, "result": x[0].item()}


print(json.dumps({one.__name__: one for one in (inside, outside, late)}[sys.argv[1]]()), flush=True)
