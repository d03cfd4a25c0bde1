"""Launches tiny kernels for some seconds and says how many, and how the memory of this process grew meanwhile: as a whole,
and by what is mapped where."""

from __future__ import annotations

import json
import sys
import time

import gpu_model
import torch

WARM_UP_S = 2


def mapped() -> dict[str, int]:
    """Bytes in memory, by the name of the mapping."""
    found: dict[str, int] = {}
    name = ""
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if "-" in words[0] and ":" not in words[0]:
                name = words[5] if len(words) > 5 else "anonymous"
            elif words[0] == "Rss:":
                found[name] = found.get(name, 0) + (int(words[1]) << 10)
    return found


def main(seconds: float) -> None:
    with torch.inference_mode():
        step = gpu_model.adds()
        gpu_model.run(step, WARM_UP_S)
        before, began, launched = mapped(), time.monotonic(), 0
        while time.monotonic() < began + seconds:
            launched += 400 * len(gpu_model.run(step, 0.5))
        after = mapped()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    most = sorted(grown.items(), key=lambda one: -one[1])[:4]
    said = {"launched": launched, "grown": sum(after.values()) - sum(before.values()), "where": dict(most)}
    print(json.dumps(said), flush=True)


main(float(sys.argv[1]))
