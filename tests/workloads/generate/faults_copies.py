"""Faults of synchronising and copying: values read back within the step, pageable memory, copies that wait."""

from __future__ import annotations

from generate.faults import Fault

ITEM = Fault(
    "item",
    "after every layer the host reads whether values grew too large; fixed: clamped on the device",
    "implicit-sync",
    {
        "after_layer": """
if FIX:
    x = x.clamp(-1e4, 1e4)
elif x.abs().amax().item() > 1e4:
    x = x.clamp(-1e4, 1e4)
"""
    },
    needs="layers",
    shape="layers",
    gpu_only=True,
)

ENDED = Fault(
    "ended",
    "after every token the host asks whether each text has ended; fixed: once, at the end",
    "implicit-sync",
    {
        "each_token": """
if not FIX:
    for text in range(ASKED):
        if logits[text].argmax().item() == -1:
            break
"""
    },
    needs="tokens",
    gpu_only=True,
    constants={"ASKED": ((16, 32), 2)},
)

NONZERO = Fault(
    "nonzero",
    "rows are picked by `nonzero` after every layer, which waits for their number; fixed: `torch.where`",
    "implicit-sync",
    {
        "after_layer": """
if FIX:
    chosen = (ROW > 0).view(-1, *(1,) * (x.dim() - 1))
    x = torch.where(chosen, x * 0.5, x)
else:
    rows = (ROW > 0).nonzero()[:, 0]
    x[rows] = x[rows] * 0.5
"""
    },
    needs="layers",
    shape="layers",
    gpu_only=True,
)

SYNCHRONIZE = Fault(
    "synchronize",
    "`torch.cuda.synchronize()` after every layer, left over from timing them; fixed: without",
    "sync-api",
    {"after_layer": "if not FIX:\n    torch.cuda.synchronize()"},
    needs="layers",
    shape="layers",
    gpu_only=True,
)

LOGITS = Fault(
    "logits",
    "all logits are copied to the host, where a few are used; fixed: only those are copied",
    "logits-to-host-each-step",
    {
        "setup": """
self.words = nn.Linear(256, WORDS_KNOWN).to(DTYPE)
self.states = [torch.randn(ASKING, 256).to(DTYPE) for _ in range(4)]
""",
        "after": """
logits = self.words(self.states[number % 4]) + y.float().mean().to(DTYPE)
if FIX:
    candidates = logits[:, :16].float().cpu()
else:
    candidates = logits.float().cpu()[:, :16]
""",
        "tail": "answer = (answer, candidates.tolist())",
    },
    also=("implicit-sync",),
    gpu_only=True,
    constants={"WORDS_KNOWN": ((32000, 50304), 64), "ASKING": ((128, 256), 4)},
)

PAGEABLE = Fault(
    "pageable",
    "a large tensor of features is copied from pageable memory; fixed: from pinned memory",
    "pageable-async-copy",
    {
        "inputs_made": """
features = [torch.randn(MEGABYTES, 512, 512) for _ in range(4)]
self.features = [pinned(one) for one in features] if FIX else features
""",
        "stage_in": "features = self.features[number % 4].to(DEVICE, non_blocking=True)",
        "after": "y = y + features[:, 0, :8].abs().mean().to(y.dtype)",
    },
    gpu_only=True,
    constants={"MEGABYTES": ((16, 32, 48), 1)},
)

SMALL_COPIES = Fault(
    "fields",
    "every field of a request is copied to the GPU by itself; fixed: all in one copy",
    "many-small-copies",
    {
        "inputs_made": """
self.packed = [pinned(torch.randn(FIELDS, 64)) for _ in range(4)]
self.fields = [[pinned(field.clone()) for field in packed] for packed in self.packed]
""",
        "stage_in": """
if FIX:
    fields = self.packed[number % 4].to(DEVICE, non_blocking=True)
else:
    fields = torch.stack([field.to(DEVICE, non_blocking=True) for field in self.fields[number % 4]])
""",
        "after": "y = y + fields.abs().mean().to(y.dtype)",
    },
    # The loop that copies field by field is the same fault, seen from Python.
    also=("batchable-loop", "python-loop-over-tensors"),
    gpu_only=True,
    constants={"FIELDS": ((192, 320, 480), 8)},
)

SYNC_COPIES = Fault(
    "waiting copies",
    "a side model takes its input in parts, each by a copy that waits; fixed: `non_blocking`",
    "sync-memcpy",
    {
        "setup": "self.side = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(3))).to(DTYPE)",
        "inputs_made": """
self.parts = [[pinned(torch.randn(2048, 1024).to(DTYPE)) for _ in range(PARTS)] for _ in range(4)]
""",
        "after": """
sums = []
for part in self.parts[number % 4]:
    part = part.to(DEVICE, non_blocking=FIX)
    sums.append(self.side(part).abs().mean())
    # What is noted about every part.
    {key: str(key) for key in range(NOTED)}
y = y + torch.stack(sums).mean().to(y.dtype)
""",
    },
    # `.to(device)` is an asynchronous copy and `cudaStreamSynchronize`: the same wait at the same line.
    also=("sync-api", "implicit-sync"),
    gpu_only=True,
    constants={"PARTS": ((12, 16, 24), 2), "NOTED": ((400, 800), 10)},
)

ON_CPU = Fault(
    "made on the host",
    "a table of weights is made on the CPU and moved in every request; fixed: made on the GPU",
    "created-on-cpu-then-moved",
    {
        "stage_in": """
if FIX:
    shares = torch.full((SHARES, 1024), 0.5, device=DEVICE)
else:
    shares = torch.full((SHARES, 1024), 0.5).to(DEVICE)
""",
        "after": "y = y + shares.mean().to(y.dtype)",
    },
    # It is the same table every time: that it is made at all is the wider fix.
    also=("repeated-work",),
    gpu_only=True,
    constants={"SHARES": ((4096, 8192), 8)},
)

COPIES = (ITEM, ENDED, NONZERO, SYNCHRONIZE, LOGITS, PAGEABLE, SMALL_COPIES, SYNC_COPIES, ON_CPU)
