"""Faults of many small kernels, and of work that need not be done at all."""

from __future__ import annotations

from generate.faults import Fault

EXPERTS = Fault(
    "experts",
    "small experts run one after the other in a Python loop; fixed: one batched product",
    "batchable-loop",
    {
        "setup": """
self.weights = torch.randn(EXPERTS, 128, 128).to(DTYPE) / 16
self.routed = [torch.randn(EXPERTS, 16, 128).to(DTYPE) for _ in range(4)]
""",
        "after": """
routed = self.routed[number % 4]
if FIX:
    mixed = torch.relu(torch.bmm(routed, self.weights)).mean((1, 2))
else:
    mixed = torch.stack([torch.relu(routed[one] @ self.weights[one]).mean() for one in range(EXPERTS)])
y = y + mixed.mean().to(y.dtype)
""",
    },
    # Seen from Python, or from the kernels: the same loop.
    also=("python-loop-over-tensors", "launch-bound"),
    gpu_only=True,
    constants={"EXPERTS": ((64, 96, 160), 4)},
)

ROWS = Fault(
    "rows",
    "rows that have nothing to do with each other are scored one by one; fixed: all at once",
    "batchable-loop",
    {
        "setup": """
self.scorer = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64)).to(DTYPE)
self.rows = [torch.randn(SCORED, 256).to(DTYPE) for _ in range(4)]
""",
        "after": """
rows = self.rows[number % 4]
if FIX:
    scored = self.scorer(rows)
else:
    scored = torch.stack([self.scorer(row) for row in rows])
y = y + scored.abs().mean().to(y.dtype)
""",
    },
    also=("python-loop-over-tensors", "launch-bound"),
    constants={"SCORED": ((64, 96, 128), 16)},
)

CHAIN = Fault(
    "chain",
    "many tiny layers that feed each other are launched one by one; fixed: replayed as a CUDA graph",
    "launch-bound",
    {
        "setup": """
self.refine = nn.ModuleList([nn.Linear(256, 256) for _ in range(REFINED)]).to(DTYPE)
self.starts = [torch.randn(16, 256).to(DTYPE) for _ in range(4)]
""",
        "code": """
def refined(layers, state):
    for layer in layers:
        state = torch.tanh(layer(state))
    return state
""",
        "ready": """
if FIX and DEVICE == "cuda":
    side = torch.cuda.Stream()
    self.asked_state = self.starts[0].clone()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        refined(self.refine, self.asked_state)
    torch.cuda.current_stream().wait_stream(side)
    self.graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(self.graph):
        self.end_state = refined(self.refine, self.asked_state)
""",
        "after": """
if FIX and DEVICE == "cuda":
    self.asked_state.copy_(self.starts[number % 4])
    self.graph.replay()
    state = self.end_state
else:
    state = refined(self.refine, self.starts[number % 4])
y = y + state.abs().mean().to(y.dtype)
""",
    },
    also=("short-kernel-gaps", "dependent-chain", "graph-not-used"),
    gpu_only=True,
    constants={"REFINED": ((96, 144, 200), 4)},
)

MASK = Fault(
    "mask",
    "the same table of distances is built in every layer; fixed: built once",
    "repeated-work",
    {
        "code": '''
def distances(length):
    """Attention falls off with the distance, in each head with another slope."""
    places = torch.arange(length, device=DEVICE)
    apart = (places[:, None] - places[None, :]).abs().float()
    slopes = 2.0 ** -torch.arange(1, WIDTH // HEAD + 1, device=DEVICE).float()
    return (-slopes[:, None, None] * apart).clamp_min(-1e4).to(DTYPE).unsqueeze(0)
''',
        "block_init": "self.kept = distances(LENGTH) if FIX else None",
        "attention_first": "mask = self.kept if FIX else distances(q.shape[2])",
        "mask": ", attn_mask=mask",
    },
    needs="blocks",
    shape="long",
)

WEIGHTS = Fault(
    "weights",
    "weights that are kept in single precision are converted in every request; fixed: converted once",
    "repeated-work",
    {
        "setup": """
self.table = torch.randn(ENTRIES, 4096, 1024) / 64
self.converted = self.table.to(DTYPE) if FIX else None
self.question = torch.randn(ENTRIES, 32, 4096).to(DTYPE)
""",
        "after": """
table = self.converted if FIX else self.table.to(DTYPE)
y = y + torch.bmm(self.question, table).abs().mean().to(y.dtype)
""",
    },
    also=("dtype-churn", "fp32-share"),
    gpu_only=True,
    constants={"ENTRIES": ((160, 240, 320), 2)},
)

GROWING = Fault(
    "growing cache",
    "keys and values grow by `torch.cat` with every token; fixed: written into a buffer of full length",
    "growing-concat",
    {
        "cache_reset": """
if not FIX:
    self.grown = self.keys[:, :, :CONTEXT], self.values[:, :, :CONTEXT]
""",
        "cache_first": """
if not FIX:
    keys, values = self.grown
    self.grown = torch.cat([keys, key.unsqueeze(2)], 2), torch.cat([values, value.unsqueeze(2)], 2)
    return self.grown
""",
    },
    needs="tokens",
)

GROWING_LIST = Fault(
    "growing results",
    "results are gathered by `torch.cat` onto what there is; fixed: gathered in a list, one `cat` at the end",
    "growing-concat",
    {
        "setup": "self.results = [torch.randn(PIECE, 1024) for _ in range(4)]",
        "after": """
part = self.results[number % 4]
if FIX:
    gathered = torch.cat([part + one for one in range(GATHERED)])
else:
    gathered = part + 0
    for one in range(1, GATHERED):
        gathered = torch.cat([gathered, part + one])
y = y + (gathered.mean() / GATHERED).to(y.dtype)
""",
    },
    gpu_only=True,
    constants={"PIECE": ((4096, 8192), 8), "GATHERED": ((24, 32, 40), 4)},
)

LAUNCH = (EXPERTS, ROWS, CHAIN, MASK, WEIGHTS, GROWING, GROWING_LIST)
