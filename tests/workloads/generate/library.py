"""Model families from libraries, with random weights: torchvision, transformers, JAX."""

from __future__ import annotations

from generate.families import Family
from generate.faults import Fault

TORCHVISION = Family(
    "torchvision",
    "Classifies pictures with a model of torchvision.",
    {
        "imports": "import torchvision",
        "constants": """
MODELS = (torchvision.models.resnet50, torchvision.models.vit_b_16, torchvision.models.convnext_tiny)
""",
        "flags": "torch.backends.cudnn.benchmark = True",
        "build": "self.model = MODELS[MODEL](weights=None).to(DTYPE, memory_format=torch.channels_last).eval()",
        # As decoded on the device.
        "setup": "self.batches = [torch.randint(0, 256, (BATCH, SIDE, SIDE, 3), dtype=torch.uint8) for _ in range(4)]",
        "inputs": """
x = self.batches[number % len(self.batches)].permute(0, 3, 1, 2)
x = x.to(DTYPE, memory_format=torch.channels_last) / 255
""",
        "forward": "y = self.model(x)",
        "result": "answer = y.argmax(-1).tolist()",
    },
    frozenset({"any", "torch"}),
    {"MODEL": (0, 1, 2), "BATCH": (96, 128), "SIDE": (224,)},
    {"MODEL": 0, "BATCH": 1, "SIDE": 64},
)

BERT = Family(
    "transformers encoder",
    "Embeds texts with a BERT of transformers.",
    {
        "imports": "from transformers import BertConfig, BertModel",
        "build": """
config = BertConfig(
    hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=WIDTH // 64, intermediate_size=4 * WIDTH
)
self.model = BertModel(config).to(DTYPE).eval()
""",
        "inputs_made": "self.batches = [pinned(torch.randint(0, 30000, (BATCH, LENGTH))) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": "y = self.model(input_ids=x).last_hidden_state.mean(1)",
        "result": "answer = y[:, :8].tolist()",
    },
    frozenset({"any", "torch"}),
    {"WIDTH": (768, 1024), "LAYERS": (6, 8), "BATCH": (48, 64), "LENGTH": (384, 512)},
    {"WIDTH": 64, "LAYERS": 2, "BATCH": 2, "LENGTH": 16},
)

GENERATE = Family(
    "transformers generate",
    "Continues texts with `generate` of transformers.",
    {
        "imports": "from transformers import LlamaConfig, LlamaForCausalLM",
        "build": """
config = LlamaConfig(
    hidden_size=WIDTH,
    num_hidden_layers=LAYERS,
    num_attention_heads=WIDTH // 64,
    num_key_value_heads=WIDTH // 64,
    intermediate_size=3 * WIDTH,
    vocab_size=VOCABULARY,
)
self.model = LlamaForCausalLM(config).to(DTYPE).eval()
""",
        "inputs_made": "self.batches = [pinned(torch.randint(1, VOCABULARY, (BATCH, LENGTH))) for _ in range(4)]",
        "inputs": "x = self.batches[number % len(self.batches)].to(DEVICE, non_blocking=True)",
        "forward": """
tokens = self.model.generate(
    x,
    attention_mask=torch.ones_like(x),
    max_new_tokens=TOKENS,
    min_new_tokens=TOKENS,
    do_sample=False,
    pad_token_id=0,
)
y = tokens[:, LENGTH:].float()
""",
        "result": "answer = tokens[:, LENGTH:].tolist()",
    },
    frozenset({"generate"}),
    {
        "WIDTH": (768, 1024),
        "LAYERS": (6, 8),
        "BATCH": (1, 4),
        "LENGTH": (32, 64),
        "TOKENS": (6, 8),
        "VOCABULARY": (32000,),
    },
    {"WIDTH": 64, "LAYERS": 2, "BATCH": 1, "LENGTH": 8, "TOKENS": 4, "VOCABULARY": 128},
    inner="TOKENS",
)

# Eager decoding of a small model: nothing is planted, this is what it does.
EAGER_GENERATE = Fault(
    "eager generate",
    "a small model decodes eagerly, token by token; not fixed here (a static cache and a compiled step would)",
    "launch-bound",
    {},
    # It asks after every token whether all texts have ended, and its cache grows by `cat`.
    also=("short-kernel-gaps", "graph-not-used", "host-wait", "dependent-chain", "implicit-sync", "queue-never-builds"),
    needs="generate",
    gpu_only=True,
)

JAX_FRAME = '''
"""#DOC#"""

#[stdlib]

# JAX would take most of the memory at once.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np
#[imports]

#[api]

SEED = #SEED#
DTYPE = jnp.#DTYPE#
#[constants]


#[model]


#[code]


class Service:
    """Answers requests. What is improved with `fixed` stands where it is used."""

    def __init__(self, options):
        self.options = options
        #[build]
        #[setup]
        #[inputs_made]
        #[ready]

    def begin(self):
        """Before a run of requests."""
        #[begin]
        return self

    def end(self):
        #[end]
        return self

    def request(self, number):
        #[before]
        #[inputs]
        #[stage_in]
        #[forward]
        #[after]
        self.scores = y
        #[result]
        #[tail]
        return answer


def wait():
    """A result that is on the host has been waited for."""


def difference(one, other):
    """The largest difference of two results, relative to the largest value."""
    one, other = np.asarray(one, np.float32), np.asarray(other, np.float32)
    return float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-6))


#[main]
'''

JAX = Family(
    "jax",
    "Scores feature vectors with a jitted JAX model.",
    {
        "imports": "import os",
        "model": """
@jax.jit
def layer(weights, x):
    return jax.nn.gelu(x @ weights)


@jax.jit
def forward(parameters, x):
    x = x @ parameters["enter"]
    for weights in parameters["layers"]:
        x = jax.nn.gelu(x @ weights)
    return x @ parameters["head"]
""",
        "build": """
keys = jax.random.split(jax.random.key(SEED), LAYERS + 2)
scale = WIDTH**-0.5
self.parameters = {
    "enter": (jax.random.normal(keys[0], (FEATURES, WIDTH)) * scale).astype(DTYPE),
    "layers": [(jax.random.normal(key, (WIDTH, WIDTH)) * scale).astype(DTYPE) for key in keys[2:]],
    "head": (jax.random.normal(keys[1], (WIDTH, CLASSES)) * scale).astype(DTYPE),
}
""",
        "inputs_made": """
numbers = np.random.default_rng(SEED)
self.batches = [numbers.normal(size=(BATCH, FEATURES)).astype(np.float32) for _ in range(4)]
""",
        "inputs": "x = jnp.asarray(self.batches[number % len(self.batches)]).astype(DTYPE)",
        "forward": "y = forward(self.parameters, x)",
        "result": "answer = np.asarray(y.argmax(-1))[:64].tolist()",
    },
    frozenset({"any", "jax"}),
    {"WIDTH": (4096, 6144), "LAYERS": (6, 8), "BATCH": (8192, 16384), "FEATURES": (64,), "CLASSES": (64,)},
    {"WIDTH": 64, "LAYERS": 3, "BATCH": 8, "FEATURES": 16, "CLASSES": 16},
    {"layers": {"WIDTH": (2048,), "LAYERS": (24, 32), "BATCH": (4096,)}},
    frame="jax",
    dtypes=("bfloat16", "float16"),
)

JAX_RECOMPILE = Fault(
    "jax recompile",
    "every request has another length, and each is compiled anew; fixed: padded to one length",
    "compile-in-request",
    {
        "setup": "self.asked = 0",
        "after": """
self.asked += 1
count = 64 + self.asked % 1000
rows = np.zeros((1100 if FIX else count, FEATURES), np.float32)
rescored = forward(self.parameters, jnp.asarray(rows).astype(DTYPE))[:1]
y = y + rescored.mean()
""",
    },
    needs="jax",
    steps=16,
)

JAX_READ = Fault(
    "jax read",
    "the host reads a value after every layer; fixed: the layers run in one jitted function",
    "implicit-sync",
    {
        "after": """
if not FIX:
    hidden = x @ self.parameters["enter"]
    for weights in self.parameters["layers"]:
        hidden = layer(weights, hidden)
        if float(jnp.abs(hidden[:4]).max()) > 1e4:
            break
    y = hidden @ self.parameters["head"]
""",
        "forward": "y = forward(self.parameters, x) if FIX else None",
    },
    also=("sync-api",),
    needs="jax",
    shape="layers",
    gpu_only=True,
)

JAX_EAGER = Fault(
    "jax eager",
    "a chain of small operations runs without `jit`; fixed: jitted",
    "launch-bound",
    {
        "code": """
def polished(state):
    for one in range(POLISHED):
        state = jnp.tanh(state * 0.5 + one * 0.01)
    return state


jitted = jax.jit(polished)
""",
        "setup": "self.states = [jnp.full((64, 256), 1.0 + one, jnp.float32) for one in range(4)]",
        "after": """
state = self.states[number % 4]
y = y + (jitted(state) if FIX else polished(state)).mean().astype(y.dtype)
""",
    },
    also=("short-kernel-gaps", "dependent-chain", "host-wait", "python-loop-over-tensors"),
    needs="jax",
    gpu_only=True,
    constants={"POLISHED": ((40, 80, 120), 4)},
)

LIBRARY = (TORCHVISION, BERT, GENERATE, JAX)
LIBRARY_FAULTS = (EAGER_GENERATE, JAX_RECOMPILE, JAX_READ, JAX_EAGER)
