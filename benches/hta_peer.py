"""What HolisticTraceAnalysis does with one file of torch.profiler: loads it and asks for its four tables (time, idle,
kernels, launches). Runs where it is installed; benches/diagnosis.py takes the time and memory of the whole process.
`hta_peer.py FILE [BYTES]`: BYTES is the most memory it may ask for. Prints which tables it gave."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from hta.trace_analysis import TraceAnalysis


def main() -> None:
    if len(sys.argv) > 2:
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
    found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".")
    asks: dict[str, Any] = {
        "time": lambda: found.get_temporal_breakdown(visualize=False),
        "idle": lambda: found.get_idle_time_breakdown(ranks=[0], visualize=False),
        "kernels": lambda: found.get_gpu_kernel_breakdown(visualize=False),
        "launches": lambda: found.get_cuda_kernel_launch_stats(ranks=[0], visualize=False),
    }
    said = {}
    for name, ask in asks.items():
        try:
            ask()
            said[name] = "given"
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(said))


if __name__ == "__main__":
    main()
