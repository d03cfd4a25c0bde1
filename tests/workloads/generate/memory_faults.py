"""Faults of memory: something keeps what it should drop. They stand in a program as any other fault does, and are the
same on a CPU and a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from generate.faults import Fault

LEAK = "leak"


@dataclass(frozen=True)
class MemoryFault(Fault):
    # Constants: name to values on a GPU, and on a CPU.
    amounts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)


# What is kept of an answer: a mebibyte in single precision is 1024 rows.
FEATURES = "features = self.mixing * y.float().mean().to(DTYPE)"
MIXING = "self.mixing = torch.randn(KEPT_ROWS, 256).to(DTYPE)"
KEPT = {"KEPT_ROWS": ((4096, 8192, 16384), (256, 512, 1024, 1536))}

GROWING_LIST = MemoryFault(
    "kept results",
    "the features of every answer stay in a list; fixed: a number of each",
    LEAK,
    {
        "setup": f"{MIXING}\nself.history = []",
        "after": f"{FEATURES}\nself.history.append(features.mean().item() if FIX else features)",
    },
    amounts=KEPT,
)

CLOSURE = MemoryFault(
    "closure",
    "a report that is made later captures the features of its request; fixed: only what it reports",
    LEAK,
    {
        "setup": f"{MIXING}\nself.reports = []",
        "after": f"""
{FEATURES}
if FIX:
    level = features.abs().max().item()
    self.reports.append(lambda: level)
else:
    self.reports.append(lambda: features.abs().max().item())
""",
        "end": "self.reported = [report() for report in self.reports]",
    },
    amounts=KEPT,
)

CACHE = MemoryFault(
    "cache without bound",
    "features are cached by user and never evicted; fixed: the oldest are",
    LEAK,
    {
        "setup": f"{MIXING}\nself.cache = {{}}",
        "after": f"""
user = f"user {{number}}"
if user not in self.cache:
    {FEATURES}
    self.cache[user] = features
if FIX and len(self.cache) > CACHED:
    self.cache.pop(next(iter(self.cache)))
""",
    },
    amounts=KEPT | {"CACHED": ((4, 8), (4, 8))},
)

HOOK = MemoryFault(
    "hook",
    "a forward hook that was for debugging keeps every output of a module; fixed: a number of each",
    LEAK,
    {
        "setup": f"""
{MIXING}
self.side = nn.Linear(256, 256).to(DTYPE)
self.seen = []
self.side.register_forward_hook(
    lambda module, inputs, output: self.seen.append(output.abs().mean().item() if FIX else output)
)
""",
        "after": "y = y + self.side(self.mixing).mean().to(y.dtype)",
    },
    amounts=KEPT,
)

WORKSPACES = MemoryFault(
    "workspaces",
    "a library keeps a workspace for every length that it was asked for; fixed: one for the longest",
    LEAK,
    {
        "code": '''
class Smoothing:
    """A small library with plans, as transforms of signals have them."""

    def __init__(self, longest=None):
        self.longest, self.plans = longest, {}

    def __call__(self, level, length):
        size = self.longest or length
        if size not in self.plans:
            self.plans[size] = torch.empty(size, dtype=DTYPE, device=DEVICE)
        plan = self.plans[size][:length]
        plan.fill_(1)
        return plan.mul_(level).mean()
''',
        "ready": "self.smooth = Smoothing(SHORTEST + SPREAD * REQUESTS if FIX else None)",
        "after": """
# No two requests are of one length.
length = SHORTEST + SPREAD * (number * 7 % REQUESTS)
self.smooth(y.float().mean().to(DTYPE), length)
""",
    },
    amounts={
        "SHORTEST": ((2_000_000, 4_000_000), (100_000, 200_000)),
        "SPREAD": ((4096, 16384), (512, 1024)),
    },
)

LEAKS = (GROWING_LIST, CLOSURE, CACHE, HOOK, WORKSPACES)
