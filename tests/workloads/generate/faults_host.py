"""Faults on the host's side: Python before and after the model, logging, the collector, other threads, compiling."""

from __future__ import annotations

from generate.faults import Fault

TOKENISER = '''
def code_of(piece):
    value = 7
    for letter in piece:
        value = (value * 31 + ord(letter)) & 0xFFFFFF
    return value


def tokenise(text):
    """Longest match first, in plain Python, as small tokenisers do it."""
    found = []
    for word in text.split():
        start = 0
        while start < len(word):
            end = min(len(word), start + 4)
            while end > start + 1 and code_of(word[start:end]) % 3:
                end -= 1
            found.append(code_of(word[start:end]) % 8192)
            start = end
    return found
'''
TEXT = """
letters = random.Random(1)
words = ["".join(letters.choices("etaoinshrdlucm", k=letters.randint(2, 9))) for _ in range(4 * WORDS)]
self.texts = [" ".join(words[start::4]) for start in range(4)]
"""

TOKENISE = Fault(
    "tokenise",
    "texts are tokenised by the serving thread while the GPU waits; fixed: they arrive as tokens",
    "preprocess-before-first-kernel",
    {
        "imports": "import random",
        "code": TOKENISER,
        "ready": TEXT + "self.tokens = [tokenise(text) for text in self.texts]\n",
        "before": """
if FIX:
    tokens = self.tokens[number % 4]
else:
    tokens = tokenise(self.texts[number % 4])
""",
        "after": "y = y + len(tokens) % 7",
    },
    # The line that is hot is the tokeniser's own.
    also=("hot-line",),
    needs="any",
    constants={"WORDS": ((900, 1500, 2200), 600)},
)

DETOKENISE = Fault(
    "detokenise",
    "results become text in plain Python after the last kernel; fixed: pieces are looked up in a table",
    "postprocess-tail",
    {
        "code": """
def piece(token):
    letters = []
    while token:
        token, letter = divmod(token, 16)
        letters.append("etaoinshrdlucmfw"[letter])
    return "".join(letters)
""",
        "ready": "self.pieces = [piece(token) for token in range(4096)]",
        "tail": """
told = self.told[number % 4]
if FIX:
    text = "".join(map(self.pieces.__getitem__, told))
else:
    text = " ".join(piece(token) for token in told).replace(" ", "")
answer = (answer, len(text))
""",
        "begin": "self.told = [[(token * 37 + text) % 4096 for token in range(TOLD)] for text in range(4)]",
    },
    also=("hot-line",),
    needs="any",
    constants={"TOLD": ((6000, 9000, 14000), 4000)},
)

PREPROCESS = Fault(
    "normalise",
    "features are normalised value by value in Python before the first kernel; fixed: by one operation",
    "preprocess-before-first-kernel",
    {
        "ready": """
self.raw = [[((value + row) * 7919 % 1000) / (10 + row) for value in range(VALUES)] for row in range(4)]
self.columns = [torch.tensor(raw) for raw in self.raw]
""",
        "before": """
if FIX:
    normal = (self.columns[number % 4] - 50.0) / 25.0
else:
    normal = torch.tensor([(value - 50.0) / 25.0 for value in self.raw[number % 4]])
""",
        "after": "y = y + normal.mean().item()",
    },
    also=("hot-line", "created-on-cpu-then-moved"),
    constants={"VALUES": ((60_000, 100_000), 30_000)},
    tolerance=2e-2,
)

LOGGING = Fault(
    "logging",
    "a log line for every row after every step; fixed: below the level",
    "logging-in-step",
    {
        "imports": "import logging\nimport os\nimport tempfile",
        "ready": """
self.log = logging.getLogger("service")
self.log.propagate = False
descriptor, file = tempfile.mkstemp(prefix="service-", suffix=".log")
self.log.addHandler(logging.FileHandler(file))
# Only this process writes it, and nobody reads it afterwards.
os.close(descriptor)
os.unlink(file)
self.log.handlers[-1].setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(funcName)s %(message)s"))
""",
        "begin": "self.log.setLevel(logging.WARNING if FIX else logging.INFO)",
        "tail": """
for row in range(LINES):
    self.log.info("request %d row %d: state %s", number, row, "running")
""",
    },
    needs="any",
    constants={"LINES": ((250, 400, 600), 200)},
)

COLLECT = Fault(
    "collect",
    "`gc.collect()` after every request walks everything that is alive; fixed: without it",
    "gc-pauses",
    {
        "imports": "import gc",
        "ready": """
self.sessions = [{key: [str(key), str(key * 7), number] for key in range(10)} for number in range(SESSIONS)]
""",
        "tail": "if not FIX:\n    gc.collect()",
    },
    needs="any",
    constants={"SESSIONS": ((2500, 4000), 1000)},
)

GIL = Fault(
    "index thread",
    "a second thread rebuilds an index all the time and holds the GIL; fixed: a process of its own does",
    "gil-contention",
    {
        "imports": "import subprocess\nimport sys\nimport threading",
        "code": '''
def index(count):
    return {number: str(number * 7) for number in range(count)}


def rebuild(stopping):
    while not stopping.is_set():
        index(2000)


ELSEWHERE = """
import os
parent = os.getppid()
while os.getppid() == parent:
    {number: str(number * 7) for number in range(2000)}
"""
''',
        "begin": """
self.finish = threading.Event()
if FIX:
    self.indexer = subprocess.Popen([sys.executable, "-I", "-S", "-c", ELSEWHERE])
else:
    self.indexer = threading.Thread(target=rebuild, args=(self.finish,), name="indexer", daemon=True)
    self.indexer.start()
""",
        "end": """
self.finish.set()
if FIX:
    self.indexer.kill()
    self.indexer.wait()
else:
    self.indexer.join()
""",
        "before": "index(ROWS_SEEN)",
    },
    needs="any",
    constants={"ROWS_SEEN": ((12_000, 20_000), 6000)},
)

LOCK = Fault(
    "lock",
    "a thread reloads a table and holds the lock meanwhile; fixed: it reloads outside and swaps under the lock",
    "lock-holder",
    {
        "imports": "import threading",
        "code": '''
class Table(threading.Thread):
    """Reloaded again and again, as from a remote store."""

    def __init__(self, options):
        super().__init__(name="reloader", daemon=True)
        self.options, self.lock, self.stopping = options, threading.Lock(), threading.Event()
        self.rows = {}

    def load(self):
        self.stopping.wait(HELD / 1000)
        return {number: number * 3 for number in range(100)}

    def run(self):
        while not self.stopping.wait(0.001):
            if FIX:
                rows = self.load()
                with self.lock:
                    self.rows = rows
            else:
                with self.lock:
                    self.rows = self.load()

    def size(self):
        with self.lock:
            return len(self.rows)
''',
        "begin": "self.table = Table(self.options)\nself.table.start()",
        "end": "self.table.stopping.set()\nself.table.join()",
        "before": "known = self.table.size()",
        "tail": "answer = (answer, known)",
    },
    # The wait at that line is the same fact, without the name of the thread.
    also=("waits-in-step", "preprocess-before-first-kernel"),
    needs="any",
    constants={"HELD": ((4, 6, 9), 4)},
)

LOADER = Fault(
    "loader",
    "pictures are decoded by a DataLoader without workers; fixed: workers and pinned batches",
    "single-threaded-loader",
    {
        "imports": "from torch.utils.data import DataLoader, Dataset",
        "code": '''
class Pictures(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, number):
        """As decoding does: some Python, then line by line over all pixels."""
        lines = [(line + number) * 31 % 256 for line in range(6 * PIXELS)]
        row = torch.tensor(lines[:PIXELS], dtype=torch.uint8)
        return torch.stack([row.roll(line) for line in range(PIXELS)]).repeat(3, 1, 1)
''',
        "flags": "# Decoding is one thread's work each, so that a worker is worth one core.\ntorch.set_num_threads(1)",
        "begin": """
if not hasattr(self, "pictures"):
    workers = dict(num_workers=6, pin_memory=DEVICE == "cuda", persistent_workers=True) if FIX else {}
    self.pictures = iter(DataLoader(Pictures(), PICTURES, **workers))
""",
        "before": "pictures = next(self.pictures).to(DEVICE, non_blocking=True)",
        "after": "y = y + pictures.to(y.dtype).mean() / 255",
    },
    also=("input-pipeline",),
    constants={"PIXELS": ((128, 160), 16), "PICTURES": ((8, 12), 2)},
)

RECOMPILE = Fault(
    "recompile",
    "a compiled head gets another length with every request and is compiled anew; fixed: padded to one length",
    "compile-in-request",
    {
        "imports": "import torch._dynamo",
        "code": """
class Rescore(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 256), nn.Linear(256, 256)

    def forward(self, x):
        return self.second(F.gelu(self.first(x)))
""",
        "flags": """
torch._dynamo.config.recompile_limit = 1024
torch._dynamo.config.accumulated_recompile_limit = 4096
torch._dynamo.config.automatic_dynamic_shapes = False
""",
        "setup": """
self.rescore = torch.compile(Rescore().to(DTYPE).eval(), backend="eager", dynamic=False)
self.candidates = torch.randn(4096, 256).to(DTYPE)
self.asked = 0
""",
        "after": """
self.asked += 1
count = 64 + self.asked % 2000
if FIX:
    self.rescore(self.candidates[:2064])[:count]
else:
    self.rescore(self.candidates[:count])
""",
    },
    steps=20,
)

HOST = (TOKENISE, DETOKENISE, PREPROCESS, LOGGING, COLLECT, GIL, LOCK, LOADER, RECOMPILE)
