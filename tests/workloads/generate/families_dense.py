"""Families without attention that a program writes itself: convolutions, a recommender, a perceptron."""

from __future__ import annotations

from generate.families import GELU, Family

CONV = Family(
    "convolution",
    "Classifies pictures with residual convolutions.",
    {
        "model": """
class Residual(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.first = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.second = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(CHANNELS), nn.BatchNorm2d(CHANNELS)

    def forward(self, x):
        return F.relu(x + self.norm2(self.second(F.relu(self.norm1(self.first(x))))))


class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.stem = nn.Conv2d(3, CHANNELS, 4, 4)
        self.layers = nn.ModuleList([Residual(options) for _ in range(LAYERS)])
        self.head = nn.Linear(CHANNELS, CLASSES)

    def forward(self, images):
        x = self.stem(images)
        #[before_layers]
        for layer in self.layers:
            x = layer(x)
            #[after_layer]
        return self.head(x.mean((2, 3)))
""",
        "flags": "torch.backends.cudnn.benchmark = True",
        "build": "self.model = Model(options).to(DTYPE<<layout:, memory_format=torch.channels_last>>).eval()",
        # As decoded on the device.
        "setup": "self.batches = [torch.randint(0, 256, (BATCH, SIDE, SIDE, 3), dtype=torch.uint8) for _ in range(4)]",
        "inputs": """
x = self.batches[number % len(self.batches)].permute(0, 3, 1, 2)
x = x.to(DTYPE<<layout:, memory_format=torch.channels_last>>) / 255
#[layout_first]
""",
        "forward": "y = self.model(x)",
        "result": "answer = y.argmax(-1).tolist()",
    },
    frozenset({"any", "layers", "conv", "torch"}),
    {
        "CHANNELS": (192, 256),
        "LAYERS": (8, 10, 12),
        "BATCH": (32, 48),
        "SIDE": (192, 224, 256),
        "CLASSES": (100, 1000),
    },
    {"CHANNELS": 16, "LAYERS": 2, "BATCH": 2, "SIDE": 32, "CLASSES": 10},
    {"layers": {"CHANNELS": (128,), "LAYERS": (16, 20), "BATCH": (24,), "SIDE": (224,)}},
    row="x[:, 0, 0, 0]",
)

RECOMMEND = Family(
    "recommender",
    "Ranks items by embeddings of their features.",
    {
        "model": """
class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.tables = nn.Embedding(FEATURES * ROWS, EMBEDDING)
        self.register_buffer("offsets", torch.arange(FEATURES) * ROWS)
        self.enter = nn.Linear(FEATURES * EMBEDDING, WIDTH)
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 16)

    def forward(self, ids):
        x = self.enter(self.tables(ids + self.offsets).flatten(1))
        #[before_layers]
        for layer in self.layers:
            hidden = layer(x)
            #[activation]
            x = hidden
            #[after_layer]
        return self.head(x)
""",
        "activation": "hidden = F.relu(hidden)",
        "build": "self.model = Model(options).to(DTYPE).eval()",
        "inputs_made": "self.batches = [pinned(torch.randint(0, ROWS, (BATCH, FEATURES))) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": "y = self.model(x)",
        "result": "answer = y.float().mean(0).tolist()",
    },
    frozenset({"any", "layers", "torch"}),
    {
        "FEATURES": (16, 26),
        "ROWS": (50_000, 100_000),
        "EMBEDDING": (64, 128),
        "WIDTH": (2048, 4096),
        "LAYERS": (4, 6),
        "BATCH": (16384, 32768),
    },
    {"FEATURES": 4, "ROWS": 100, "EMBEDDING": 8, "WIDTH": 32, "LAYERS": 2, "BATCH": 16},
    {"layers": {"WIDTH": (2048,), "LAYERS": (24, 32), "BATCH": (4096,)}},
)

MLP = Family(
    "mlp",
    "Scores feature vectors with a multilayer perceptron.",
    {
        "model": """
class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.enter = nn.Linear(FEATURES, WIDTH)
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.enter(x)
        #[before_layers]
        for layer in self.layers:
            hidden = layer(x)
            #[activation]
            x = hidden
            #[after_layer]
        return self.head(x)
""",
        "activation": GELU,
        "build": "self.model = Model(options).to(DTYPE).eval()",
        "inputs_made": "self.batches = [pinned(torch.randn(BATCH, FEATURES).to(DTYPE)) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": "y = self.model(x)",
        "result": "answer = y.argmax(-1)[:64].tolist()",
    },
    frozenset({"any", "layers", "torch", "activation"}),
    {"WIDTH": (4096, 6144), "LAYERS": (4, 6), "BATCH": (8192, 16384), "CLASSES": (64, 256), "FEATURES": (64, 128)},
    {"WIDTH": 64, "FEATURES": 16, "LAYERS": 3, "BATCH": 8, "CLASSES": 16},
    {"layers": {"WIDTH": (2048,), "LAYERS": (32, 40), "BATCH": (4096,)}},
)

DENSE = (CONV, RECOMMEND, MLP)
