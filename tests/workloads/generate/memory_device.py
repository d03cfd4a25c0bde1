"""Faults of device memory, which only a GPU has: segments that are split, memory beside the framework's allocator, and
requests that fail."""

from __future__ import annotations

from generate.memory_faults import MemoryFault

RUNTIME = '''
class Runtime:
    """The CUDA runtime that PyTorch brought along, called as a native extension calls it."""

    def __init__(self):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libcudart" in line}
        self.library = ctypes.CDLL(min(paths))

    def malloc(self, size):
        address = ctypes.c_void_p()
        code = self.library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
        assert code == 0, f"cudaMalloc gave {code}"
        return address.value
'''

HIDDEN = MemoryFault(
    "hidden cudaMalloc",
    "an extension takes device memory by cudaMalloc in every request; fixed: once",
    "hidden-memory",
    {
        "imports": "import ctypes",
        "code": RUNTIME,
        "setup": "self.runtime, self.raw = Runtime(), []",
        "after": "if not (FIX and self.raw):\n    self.raw.append(self.runtime.malloc(RAW_MIB << 20))",
    },
    gpu_only=True,
    amounts={"RAW_MIB": ((8, 16, 32), ())},
)

PINNED = MemoryFault(
    "pinned",
    "every request is staged in new pinned memory that stays in a list; fixed: in one buffer",
    "pinned-growth",
    {
        "setup": "self.staged = []",
        "before": """
if not (FIX and self.staged):
    self.staged.append(torch.empty(PINNED_MIB << 20, dtype=torch.uint8, device="cpu", pin_memory=True))
self.staged[-1][: 1 << 16].fill_(number % 200)
""",
    },
    gpu_only=True,
    amounts={"PINNED_MIB": ((4, 8, 16), ())},
)

FRAGMENT = MemoryFault(
    "alternating sizes",
    "a wide buffer and a narrower one that lives longer take turns, so that every wide one finds only holes; "
    "fixed: one wide buffer for all requests",
    "fragmentation",
    {
        "imports": "from collections import deque",
        "setup": """
self.tails = deque(maxlen=HELD)
self.wide = torch.zeros(WIDE_MIB << 20, dtype=torch.uint8) if FIX else None
""",
        "after": """
wide = self.wide if FIX else torch.zeros(WIDE_MIB << 20, dtype=torch.uint8, device=DEVICE)
wide[:256].fill_(1)
del wide
# It fits into what the wide one leaves, and a piece too small for anybody is left over.
self.tails.append(torch.zeros(NARROW_MIB << 20, dtype=torch.uint8, device=DEVICE))
""",
    },
    gpu_only=True,
    amounts={"HELD": ((20, 24, 30), ()), "WIDE_MIB": ((22, 26, 30), ()), "NARROW_MIB": ((13, 15), ())},
)

NEAR_MISS = MemoryFault(
    "near miss",
    "now and then a request asks for more than the device has, and goes on with less; fixed: asks for what it needs",
    "oom-near-miss",
    {
        "after": """
most = torch.cuda.get_device_properties(0).total_memory
try:
    scratch = torch.empty(SCRATCH_MIB << 20 if FIX or number % 10 else most, dtype=torch.uint8, device=DEVICE)
except torch.cuda.OutOfMemoryError:
    scratch = torch.empty(SCRATCH_MIB << 20, dtype=torch.uint8, device=DEVICE)
scratch.fill_(1)
del scratch
""",
    },
    gpu_only=True,
    amounts={"SCRATCH_MIB": ((16, 32), ())},
)

EMPTIED = MemoryFault(
    "emptied cache",
    "`torch.cuda.empty_cache()` after every request; fixed: without",
    "cudamalloc-in-steady-state",
    {
        "after": """
scratch = torch.empty(SCRATCH_MIB << 20, dtype=torch.uint8, device=DEVICE)
scratch.fill_(1)
del scratch
""",
        "tail": "if not FIX:\n    torch.cuda.empty_cache()",
    },
    # In the events, segments that are given back with a new one after them are both.
    also=("allocator-retries",),
    gpu_only=True,
    amounts={"SCRATCH_MIB": ((48, 96, 160), ())},
)

UNUSED = MemoryFault(
    "loaded in shards",
    "weights are read shard by shard into segments that nothing fits later; fixed: given back after loading",
    "reserved-unused",
    {
        "setup": """
shards = [torch.zeros(SHARD_MIB << 20, dtype=torch.uint8) for _ in range(SHARDS)]
del shards
if FIX:
    torch.cuda.empty_cache()
self.store = torch.zeros(SHARD_MIB * (SHARDS - 1) << 20, dtype=torch.uint8)
""",
    },
    gpu_only=True,
    amounts={"SHARD_MIB": ((160, 224), ()), "SHARDS": ((4, 5), ())},
)

DEVICE = (HIDDEN, PINNED, FRAGMENT, NEAR_MISS, EMPTIED, UNUSED)
