"""Faults of how the device computes: precision, alignment, layout, fusion, attention, padding."""

from __future__ import annotations

from generate.faults import Fault

TF32 = Fault(
    "tf32 off",
    "matrix products in single precision with TF32 off; fixed: TF32 allowed",
    "tf32-off",
    {"begin": 'torch.set_float32_matmul_precision("high" if FIX else "highest")'},
    also=("tensor-cores-unused", "fp32-share"),
    gpu_only=True,
    dtype="float32",
    tolerance=2e-2,
    without=("decode", "convolution", "torchvision"),
)

FP32 = Fault(
    "single precision",
    "a side model runs in single precision where half would do; fixed: bfloat16",
    "tensor-cores-unused",
    {
        "setup": """
self.wide = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(3)))
if FIX:
    self.wide = self.wide.to(torch.bfloat16)
self.asked = [torch.randn(ASKED_ROWS, 4096).to(torch.bfloat16) for _ in range(4)]
""",
        "after": """
asked = self.asked[number % 4]
wide = self.wide(asked if FIX else asked.float())
y = y + wide.float().abs().mean().to(y.dtype)
""",
    },
    also=("tf32-off", "fp32-share"),
    gpu_only=True,
    constants={"ASKED_ROWS": ((512, 1024, 2048), 4)},
    tolerance=2e-2,
)

MATH_ATTENTION = Fault(
    "attention by hand",
    "attention is written out as products and softmax; fixed: `scaled_dot_product_attention`",
    "attention-fallback",
    {
        "attention_first": """
if not FIX:
    weights = (q @ k.transpose(-2, -1)) * HEAD**-0.5
    return torch.softmax(weights.float(), -1).to(v.dtype) @ v
"""
    },
    also=("known-fusion-missing",),
    needs="blocks",
    shape="long",
    gpu_only=True,
)

MATH_BACKEND = Fault(
    "math attention",
    "only the math kernel is allowed for attention; fixed: the fused ones",
    "attention-fallback",
    {
        "imports": "from torch.nn.attention import SDPBackend, sdpa_kernel",
        "attention_first": """
if not FIX:
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v)
""",
    },
    also=("known-fusion-missing",),
    needs="blocks",
    shape="long",
    gpu_only=True,
)

UNALIGNED = Fault(
    "unaligned",
    "a product whose width is no multiple of eight; fixed: padded with zeros",
    "unaligned-matmul",
    {
        "setup": """
words = torch.randn(ODD, ODD).to(DTYPE) / 64
states = [torch.randn(4096, ODD).to(DTYPE) for _ in range(4)]
even = -(-ODD // 64) * 64 if FIX else ODD
self.words = F.pad(words, (0, even - ODD, 0, even - ODD))
self.states = [F.pad(one, (0, even - ODD)) for one in states]
""",
        "after": """
hidden = self.states[number % 4]
for _ in range(PRODUCTS):
    hidden = hidden @ self.words
y = y + hidden[:, :ODD].float().abs().mean().to(y.dtype)
""",
    },
    also=("tensor-cores-unused",),
    gpu_only=True,
    constants={"ODD": ((4093, 4099, 5003), 33), "PRODUCTS": ((6, 8), 2)},
    tolerance=3e-2,
)

ELEMENTWISE = Fault(
    "elementwise",
    "the activation is written out, a kernel for every sign in it; fixed: `F.gelu`",
    "unfused-elementwise",
    {
        "activation": """
if FIX:
    hidden = F.gelu(hidden, approximate="tanh")
else:
    hidden = 0.5 * hidden * (1.0 + torch.tanh(0.7978845608 * (hidden + 0.044715 * hidden * hidden * hidden)))
"""
    },
    # That such a chain is bound by bandwidth says the same: read and write once.
    also=("known-fusion-missing", "memory-bandwidth-bound"),
    needs="activation",
    gpu_only=True,
    without=("decode",),
    tolerance=5e-2,
)

LAYOUT = Fault(
    "layout",
    "convolutions in half precision on NCHW, which are transposed there and back; fixed: channels last",
    "conv-layout",
    {
        "layout": "",
        "layout_first": """
x = x.contiguous(memory_format=torch.channels_last if FIX else torch.contiguous_format)
""",
        "ready": "if FIX:\n    self.model = self.model.to(memory_format=torch.channels_last)",
    },
    needs="conv",
    gpu_only=True,
    tolerance=5e-2,
)

PADDING = Fault(
    "padding",
    "short texts are padded to the longest there could be; fixed: to the longest there is",
    "padding-waste",
    {
        "code": '''
def padded(rows, length):
    """Zeros after the end of each row."""
    table = torch.zeros(len(rows), length, dtype=torch.long)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table
''',
        "setup": """
self.reader = nn.Sequential(
    nn.Embedding(1000, 1024, padding_idx=0), nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)
).to(DTYPE)
""",
        "inputs_made": """
lengths = [LONGEST // 8 + number for number in range(16)]
longest = max(lengths) if FIX else LONGEST
self.texts = [pinned(padded([torch.randint(1, 1000, (one,)) for one in lengths], longest)) for _ in range(4)]
""",
        "after": """
texts = self.texts[number % 4].to(DEVICE, non_blocking=True)
read = self.reader(texts) * (texts != 0).unsqueeze(-1)
y = y + (read.float().abs().sum() / 1e6).to(y.dtype)
""",
    },
    constants={"LONGEST": ((4096, 8192), 64)},
    tolerance=3e-2,
)

COMPUTE = (TF32, FP32, MATH_ATTENTION, MATH_BACKEND, UNALIGNED, ELEMENTWISE, LAYOUT, PADDING)
