"""Judges the clock: what the host saw of each spinning kernel against what was recorded of it. The recorded kernel must
lie between the host's markers; how far the two clocks are apart shows in the least delays, and drift in how these
change."""

from __future__ import annotations

import statistics
from typing import Any

# The host looks at the flag some ten million times a second, and a write over PCIe takes about a microsecond. A start
# recorded after the host saw it, or an end after the wait returned, is an error of the clock, apart from this little.
READ_NS = 100
WINDOWS = 20

Seen = list[tuple[int, int, int, int]]


def quantile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def judge(seen: Seen, kernels: list[tuple[int, int]], spin_ns: int) -> dict[str, Any]:
    """`seen`: before the launch, start seen, end seen, after the wait. `kernels`: recorded (start, end). Both in
    order."""
    delays = [began - start for (_, began, _, _), (start, _) in zip(seen, kernels, strict=True)]
    launches = [start - before for (before, _, _, _), (start, _) in zip(seen, kernels, strict=True)]
    returns = [after - end for (_, _, _, after), (_, end) in zip(seen, kernels, strict=True)]
    durations = [end - start for start, end in kernels]
    size = max(len(delays) // WINDOWS, 1)
    windows = [min(delays[at : at + size]) for at in range(0, len(delays) - size + 1, size)]
    return {
        "kernels": len(kernels),
        "minutes": round((seen[-1][3] - seen[0][0]) / 60e9, 2),
        "start_seen_minus_recorded_ns": {
            "min": min(delays),
            "median": int(statistics.median(delays)),
            "p99": quantile(delays, 0.99),
        },
        "windowed_min_ns": windows,
        "windowed_min_spread_ns": max(windows) - min(windows),
        "drift_ns": windows[-1] - windows[0],
        "shortest_launch_to_start_ns": min(launches),
        "shortest_end_to_return_ns": min(returns),
        "duration_minus_spin_ns": {
            "min": min(durations) - spin_ns,
            "median": int(statistics.median(durations)) - spin_ns,
        },
        "start_before_launch": sum(delay < 0 for delay in launches),
        "end_after_return": sum(delay < -READ_NS for delay in returns),
        "start_after_seen": sum(delay < -READ_NS for delay in delays),
    }
