"""Programs whose memory is as it should be, and looks at first as if it were not: what is kept has a bound."""

from __future__ import annotations

from generate.memory_device import RUNTIME
from generate.memory_faults import FEATURES, KEPT, MIXING, MemoryFault
from generate.recipe import HEALTHY

PLAIN = MemoryFault("nothing", "nothing is kept; a decoder reuses its cache of keys and values", HEALTHY, {})

FILLED = MemoryFault(
    "cache that fills up",
    "features are cached until there are so many, then the oldest goes",
    HEALTHY,
    {
        "setup": f"{MIXING}\nself.cache = {{}}",
        "after": f"""
{FEATURES}
self.cache[f"user {{number}}"] = features
if len(self.cache) > CACHED:
    self.cache.pop(next(iter(self.cache)))
""",
    },
    amounts=KEPT | {"CACHED": ((6, 10, 14), (6, 10, 14))},
)

RING = MemoryFault(
    "ring",
    "features go into a ring that was allocated before the first request",
    HEALTHY,
    {
        "setup": f"{MIXING}\nself.ring = torch.zeros(SLOTS, KEPT_ROWS, 256).to(DTYPE)",
        "after": f"{FEATURES}\nself.ring[number % SLOTS] = features",
    },
    amounts=KEPT | {"SLOTS": ((8, 16), (8, 16))},
)

FLUSHED = MemoryFault(
    "flushed list",
    "features are collected and written away every few requests",
    HEALTHY,
    {
        "setup": f"{MIXING}\nself.collected, self.written = [], 0.0",
        "after": f"""
{FEATURES}
self.collected.append(features)
if len(self.collected) == COLLECTED:
    self.written += torch.stack(self.collected).float().mean().item()
    self.collected.clear()
""",
    },
    amounts=KEPT | {"COLLECTED": ((5, 7), (5, 7))},
)

CONSTANT = MemoryFault(
    "few workspaces",
    "a library keeps a workspace for each of the few lengths that it is asked for",
    HEALTHY,
    {
        "setup": "self.plans = {}",
        "after": """
length = LONGEST // (1 + number % LENGTHS)
if length not in self.plans:
    self.plans[length] = torch.empty(length, dtype=DTYPE, device=DEVICE)
self.plans[length].fill_(1).mul_(y.float().mean().to(DTYPE)).mean()
""",
    },
    amounts={"LONGEST": ((8_000_000, 16_000_000), (400_000, 800_000)), "LENGTHS": ((4, 6), (4, 6))},
)

VARYING = MemoryFault(
    "varying batches",
    "requests come in batches of some sizes, in no order, and keep nothing",
    HEALTHY,
    {
        "setup": MIXING,
        "after": """
rows = KEPT_ROWS // (1 + number * 5 % 7)
features = torch.relu(self.mixing[:rows] * y.float().mean().to(DTYPE))
features = (features + 1).softmax(-1)
del features
""",
    },
    amounts=KEPT,
)

RAW_ONCE = MemoryFault(
    "raw once",
    "an extension takes its device memory by cudaMalloc when it is made, and none later",
    HEALTHY,
    {
        "imports": "import ctypes",
        "code": RUNTIME,
        "setup": "self.raw = Runtime().malloc(RAW_MIB << 20)",
    },
    gpu_only=True,
    amounts={"RAW_MIB": ((64, 128, 256), ())},
)

STAGED = MemoryFault(
    "staging",
    "requests are staged in two pinned buffers that take turns",
    HEALTHY,
    {
        "inputs_made": """
self.staging = [torch.empty(PINNED_MIB << 20, dtype=torch.uint8, device="cpu", pin_memory=True) for _ in range(2)]
""",
        "after": """
staged = self.staging[number % 2]
staged[: 1 << 16].fill_(number % 200)
moved = staged.to(DEVICE, non_blocking=True)
del moved
""",
    },
    gpu_only=True,
    amounts={"PINNED_MIB": ((8, 16), ())},
)

SOUND = (PLAIN, FILLED, RING, FLUSHED, CONSTANT, VARYING, RAW_ONCE, STAGED)
