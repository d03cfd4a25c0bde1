"""What every generated program has around its model: arguments, the loop of requests as its marks want it, the check
that planted and fixed compute the same."""

from __future__ import annotations

TORCH = '''
"""#DOC#"""

#[stdlib]

import torch
import torch.nn.functional as F
from torch import nn
#[imports]

#[api]

SEED = #SEED#
DEVICE = "#DEVICE#"
DTYPE = torch.#DTYPE#
#[constants]


def pinned(tensor):
    return tensor.pin_memory() if DEVICE == "cuda" else tensor


#[model]


#[code]


class Service:
    """Answers requests. What is improved with `fixed` stands where it is used."""

    @torch.inference_mode()
    def __init__(self, options):
        self.options = options
        torch.manual_seed(SEED)
        #[flags]
        with torch.device(DEVICE):
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

    @torch.inference_mode()
    def request(self, number):
        #[before]
        #[inputs]
        #[stage_in]
        #[forward]
        #[after]
        #[noise]
        self.scores = y
        #[result]
        #[tail]
        return answer


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def difference(one, other):
    """The largest difference of two results, relative to the largest value."""
    one, other = one.float(), other.float()
    return ((one - other).abs().max() / one.abs().max().clamp_min(1e-6)).item()


#[main]
'''

MAIN = '''
def serve(options):
    service = Service(options).begin()
    for number in range(WARM):
        service.request(number)
    wait()
    took = []
    began = before = time.perf_counter()
    #[loop]
    service.end()
    # Without a warm-up the first request is start-up.
    steady = took if WARM else took[1:]
    mean = 1e6 * sum(steady) / len(steady)
    middle = 1e6 * sorted(steady)[len(steady) // 2]
    print(json.dumps({"steps": len(took), "warm": WARM, "inner": INNER, "mean_us": mean, "p50_us": middle}), flush=True)


def check(options):
    """Planted and fixed must compute the same, as exactly as the numbers allow."""
    results = []
    for fixed in (False, True):
        service = Service(SimpleNamespace(fixed=fixed, also_fixed=fixed)).begin()
        for number in range(3):
            service.request(number)
        wait()
        results.append(service.scores)
        service.end()
    off = difference(*results)
    print(json.dumps({"check": off <= TOLERANCE, "difference": off, "tolerance": TOLERANCE}), flush=True)
    return 0 if off <= TOLERANCE else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixed", action="store_true", help="with the fix")
    parser.add_argument("--also-fixed", action="store_true", help="with the fix of the second fault")
    parser.add_argument("--check", action="store_true", help="compare the results of both")
    parser.add_argument("--seconds", type=float, default=1.2)
    options = parser.parse_args()
    if options.check:
        return check(options)
    #[serving]


if __name__ == "__main__":
    raise SystemExit(main())
'''

# One turn, timed from the end of the one before, as a server's own clock has it.
TURN = """
service.request(number)
now = time.perf_counter()
took.append(now - before)
before = now
if len(took) >= LEAST_STEPS and now - began > (options.seconds if len(took) < STEPS else 0.8):
    break
"""


def turn(indent: int, inside: int) -> str:
    """The request stands `inside` deeper where a mark is around it."""
    first, *rest = TURN.strip().splitlines()
    return "\n".join([" " * (indent + inside) + first] + [" " * indent + line for line in rest])


STEP = """
try:
    from inferscope import step
except ImportError:  # A plain program wherever the package is not.

    def step(iterable, name=None):
        return iterable
"""
SCOPE = """
try:
    from inferscope import scope
except ImportError:  # A plain program wherever the package is not.
    from contextlib import nullcontext as scope
"""

MARKS = {
    "step": {"api": STEP, "loop": f'for number in step(range(1_000_000), name="request"):\n{turn(4, 0)}'},
    "scope": {"api": SCOPE, "loop": f'for number in range(1_000_000):\n    with scope("request"):\n{turn(4, 4)}'},
    "nvtx": {"loop": f'for number in range(1_000_000):\n    with torch.cuda.nvtx.range("request"):\n{turn(4, 4)}'},
    "none": {"loop": f"for number in range(1_000_000):\n{turn(4, 0)}"},
    # CUB, which PyTorch sorts and scans with, marks its own ranges in a domain of its own.
    "library": {
        "loop": f"for number in range(1_000_000):\n{turn(4, 0)}",
        "noise": """
# The likeliest ones, as sampling wants them.
for part in y.float().flatten().chunk(3):
    ordered = torch.sort(part, descending=True).values
    torch.cumsum(torch.softmax(ordered, -1), -1)
""",
    },
}
CPU_MARKS = ("step", "scope", "none")

SERVING = "return serve(options)"
# JAX has threads as soon as it is imported, and a fork would have their locks.
THREADED = ("serving process",)

COMPANY: dict[str, dict[str, str]] = {
    "alone": {},
    "metrics thread": {
        "imports": "import threading",
        "code": '''
class Metrics(threading.Thread):
    """Reports a few times a second how many requests there were."""

    def __init__(self, service):
        super().__init__(name="metrics", daemon=True)
        self.service, self.stopping, self.reports = service, threading.Event(), []

    def run(self):
        while not self.stopping.wait(0.05):
            self.reports.append({"time": time.time(), "reports": len(self.reports)})
''',
        "begin": "self.metrics = Metrics(self)\nself.metrics.start()",
        "end": "self.metrics.stopping.set()\nself.metrics.join()",
    },
    "feeding thread": {
        "imports": "import queue\nimport threading",
        "code": '''
def feed(numbers, stopping):
    """Requests as they come in, a few of them ahead."""
    number = 0
    while not stopping.is_set():
        try:
            numbers.put(number, timeout=0.05)
        except queue.Full:
            continue
        number += 1
''',
        "begin": """
self.numbers, self.stopping = queue.Queue(8), threading.Event()
self.feeder = threading.Thread(target=feed, args=(self.numbers, self.stopping), name="feeder", daemon=True)
self.feeder.start()
""",
        "end": "self.stopping.set()\nself.feeder.join()",
        "before": "number = self.numbers.get()",
    },
    "serving thread": {
        "imports": "import threading",
        "serving": """
# The main thread would take signals.
server = threading.Thread(target=serve, args=(options,), name="server")
server.start()
server.join()
return 0
""",
    },
    "serving process": {
        "imports": "import multiprocessing",
        "serving": """
# Forked before anything has touched the device.
server = multiprocessing.get_context("fork").Process(target=serve, args=(options,), name="server")
server.start()
server.join()
return server.exitcode
""",
    },
    "child process": {
        "imports": "import subprocess\nimport sys",
        "code": '''
# A process of the same service that only waits here, and ends with this one.
CHILD = """
import os, time
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.2)
"""
''',
        "begin": 'self.child = subprocess.Popen([sys.executable, "-I", "-S", "-c", CHILD])',
        "end": "self.child.kill()\nself.child.wait()",
    },
}
