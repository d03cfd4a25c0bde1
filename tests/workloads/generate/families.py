"""What a model family is, and the transformers that a program writes itself: the text of the model, and sizes that
keep a large GPU busy for some milliseconds a request. The shape "layers" has many short ones."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from generate.template import Slots

Sizes = dict[str, int]


@dataclass(frozen=True)
class Family:
    name: str
    doc: str
    slots: Slots
    # What a fault may stand on: blocks (with attention), layers, tokens (a decoding loop), any.
    offers: frozenset[str]
    large: dict[str, tuple[int, ...]]
    small: Sizes
    # Instead of `large`, where a fault needs another shape.
    shapes: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    # One value of each row of a layer's result.
    row: str = "x[:, 0]"
    frame: str = "torch"
    dtypes: tuple[str, ...] = ("bfloat16", "bfloat16", "float16")
    # The name of the constant that counts an inner loop that could be taken for steps too.
    inner: str | None = None

    def sizes(self, choose: random.Random, shape: str, small: bool) -> Sizes:
        if small:
            return dict(self.small)
        ranges = self.large | self.shapes.get(shape, {})
        return {name: choose.choice(values) for name, values in ranges.items()}


BLOCK = """
class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        #[block_init]

    def attention(self, q, k, v):
        #[attention_first]
        return F.scaled_dot_product_attention(q, k, v<<mask:>>)

    def forward(self, x):
        batch, length, _ = x.shape
        #[block_first]
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, WIDTH // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        mixed = self.attention(qkv[0], qkv[1], qkv[2])
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        hidden = self.up(self.norm2(x))
        #[activation]
        return x + self.down(hidden)
"""
GELU = 'hidden = F.gelu(hidden, approximate="tanh")'

ENCODE = Family(
    "encode",
    "Scores texts with a transformer encoder.",
    {
        "model": BLOCK
        + """

class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([Block(options) for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        x = self.embedding(ids)
        #[before_layers]
        for layer in self.layers:
            x = layer(x)
            #[after_layer]
        return self.head(self.norm(x).mean(1))
""",
        "activation": GELU,
        "build": "self.model = Model(options).to(DTYPE).eval()",
        "inputs_made": "self.batches = [pinned(torch.randint(0, VOCABULARY, (BATCH, LENGTH))) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": "y = self.model(x)",
        "result": "answer = y.argmax(-1).tolist()",
    },
    frozenset({"any", "blocks", "layers", "torch", "activation"}),
    {
        "WIDTH": (1024, 1536, 2048),
        "HEAD": (64, 128),
        "LAYERS": (4, 6, 8),
        "BATCH": (16, 32),
        "LENGTH": (256, 512),
        "VOCABULARY": (8192, 32000),
        "CLASSES": (128, 1000),
    },
    {"WIDTH": 64, "HEAD": 16, "LAYERS": 2, "BATCH": 4, "LENGTH": 32, "VOCABULARY": 256, "CLASSES": 16},
    {
        "layers": {"WIDTH": (1024,), "LAYERS": (16, 20, 24), "BATCH": (8,), "LENGTH": (256, 384)},
        "long": {"WIDTH": (1024,), "LAYERS": (4, 6), "BATCH": (8,), "LENGTH": (1024, 2048), "HEAD": (64,)},
    },
    row="x[:, 0, 0]",
)

DIFFUSE = Family(
    "diffusion",
    "Denoises latents with a transformer, a few steps a picture.",
    {
        "model": BLOCK
        + """

class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.enter, self.leave = nn.Linear(CHANNELS, WIDTH), nn.Linear(WIDTH, CHANNELS)
        self.time = nn.Linear(1, WIDTH)
        self.layers = nn.ModuleList([Block(options) for _ in range(LAYERS)])

    def forward(self, latents, level):
        x = self.enter(latents) + self.time(level)
        #[before_layers]
        for layer in self.layers:
            x = layer(x)
            #[after_layer]
        return self.leave(x)
""",
        "activation": GELU,
        "build": """
self.model = Model(options).to(DTYPE).eval()
self.levels = torch.linspace(1.0, 0.1, ROUNDS).to(DTYPE).view(ROUNDS, 1)
""",
        "inputs_made": "self.batches = [pinned(torch.randn(BATCH, LENGTH, CHANNELS).to(DTYPE)) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": """
latents = x
for level in self.levels:
    noise = self.model(latents, level)
    #[each_round]
    latents = latents - 0.1 * level * noise
y = latents.mean(1)
""",
        "result": "answer = y[:, :4].tolist()",
    },
    frozenset({"any", "blocks", "layers", "torch", "activation"}),
    {
        "WIDTH": (1024, 1536),
        "HEAD": (64, 128),
        "LAYERS": (3, 4),
        "BATCH": (8, 16),
        "LENGTH": (512, 1024),
        "CHANNELS": (16, 64),
        "ROUNDS": (3, 4, 6),
    },
    {"WIDTH": 64, "HEAD": 16, "LAYERS": 2, "BATCH": 2, "LENGTH": 32, "CHANNELS": 8, "ROUNDS": 3},
    {
        "layers": {"WIDTH": (1024,), "LAYERS": (8,), "BATCH": (4,), "LENGTH": (512, 768), "ROUNDS": (3, 4)},
        "long": {"WIDTH": (1024,), "LAYERS": (2,), "BATCH": (4,), "LENGTH": (2048,), "ROUNDS": (3,), "HEAD": (64,)},
    },
    row="x[:, 0, 0]",
    inner="ROUNDS",
)

DECODE = Family(
    "decode",
    "Continues texts token by token, with a cache of keys and values.",
    {
        "model": '''
class Layer(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.keys = torch.randn(BATCH, WIDTH // HEAD, CONTEXT + TOKENS, HEAD)
        self.values = torch.randn(BATCH, WIDTH // HEAD, CONTEXT + TOKENS, HEAD)
        self.reset()

    def convert(self):
        self.keys, self.values = self.keys.to(DTYPE), self.values.to(DTYPE)
        self.reset()

    def reset(self):
        """Back to the end of the prompt."""
        self.length = CONTEXT
        #[cache_reset]

    def extended(self, key, value):
        #[cache_first]
        self.keys[:, :, self.length] = key
        self.values[:, :, self.length] = value
        self.length += 1
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).view(BATCH, 3, WIDTH // HEAD, HEAD).unbind(1)
        keys, values = self.extended(k, v)
        mixed = F.scaled_dot_product_attention(q.unsqueeze(2), keys, values)
        x = x + self.out(mixed.reshape(BATCH, WIDTH))
        hidden = self.up(self.norm2(x))
        #[activation]
        return x + self.down(hidden)


class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([Layer(options) for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x = self.embedding(ids)
        #[before_layers]
        for layer in self.layers:
            x = layer(x)
            #[after_layer]
        return self.head(self.norm(x))
''',
        "activation": GELU,
        "build": """
self.model = Model(options).to(DTYPE).eval()
for layer in self.model.layers:
    layer.convert()
""",
        "inputs_made": "self.batches = [pinned(torch.randint(0, VOCABULARY, (BATCH,))) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": """
for layer in self.model.layers:
    layer.reset()
chosen = []
for position in range(TOKENS):
    logits = self.model(x)
    #[each_token]
    x = logits.argmax(-1)
    chosen.append(x)
y = logits
""",
        "result": "answer = torch.stack(chosen).tolist()",
    },
    frozenset({"any", "layers", "tokens", "torch", "activation"}),
    {
        "WIDTH": (4096,),
        "HEAD": (128,),
        "LAYERS": (2, 3),
        "BATCH": (64, 96),
        "CONTEXT": (1024, 1536),
        "TOKENS": (4, 6, 8),
        "VOCABULARY": (8192, 32000),
    },
    {"WIDTH": 64, "HEAD": 16, "LAYERS": 2, "BATCH": 4, "CONTEXT": 32, "TOKENS": 4, "VOCABULARY": 256},
    {"layers": {"LAYERS": (4,), "BATCH": (32,), "CONTEXT": (1024,)}},
    row="x[:, 0]",
    inner="TOKENS",
)

TRANSFORMERS = (ENCODE, DIFFUSE, DECODE)
