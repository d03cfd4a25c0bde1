"""From a seed to a program whose memory is known: a small model of a family, a fault of memory or a way of keeping
things that is none, and how requests are marked. The source is put together as that of any generated program."""

from __future__ import annotations

import random
from typing import Any

from generate import frame
from generate.families import TRANSFORMERS, Sizes
from generate.families_dense import DENSE
from generate.memory_device import DEVICE
from generate.memory_faults import LEAKS, MemoryFault
from generate.memory_healthy import PLAIN, SOUND
from generate.program import source as whole_source
from generate.recipe import HEALTHY, Recipe

FAMILIES = (*TRANSFORMERS, *DENSE)
# What a larger device makes of the tiny sizes, so that a request's own memory is worth a look and building is not.
FACTORS = {"WIDTH": (2, 4, 8), "CHANNELS": (2, 4), "BATCH": (1, 2, 4), "LENGTH": (1, 2, 4), "LAYERS": (1, 2)}
SMALL_FACTORS = {"WIDTH": (1, 2, 3), "CHANNELS": (1, 2), "BATCH": (1, 2), "LAYERS": (1, 2)}
REQUESTS = (40, 60, 80)
# Milliseconds between two requests: counters are read ten times a second, and must see something of it.
PAUSES = (10, 20, 30)

TURN = "service.request(number)"
# The next one comes a little later.
LATER = "time.sleep(PAUSE_MS / 1000)"
MARKS = {
    "step": {
        "api": frame.STEP,
        "loop": f'for number in step(range(REQUESTS), name="request"):\n    {TURN}\n    {LATER}',
    },
    "scope": {
        "api": frame.SCOPE,
        "loop": f'for number in range(REQUESTS):\n    with scope("request"):\n        {TURN}\n    {LATER}',
    },
    "nvtx": {
        "loop": "for number in range(REQUESTS):\n"
        f'    with torch.cuda.nvtx.range("request"):\n        {TURN}\n    {LATER}'
    },
    "none": {"loop": f"for number in range(REQUESTS):\n    {TURN}\n    {LATER}"},
}

MAIN = '''
def serve(options):
    service = Service(options).begin()
    for number in range(WARM):
        service.request(number)
    wait()
    #[loop]
    wait()
    service.end()
    print(json.dumps({"requests": REQUESTS, "warm": WARM, "scores": service.scores.float().mean().item()}), flush=True)


def check(options):
    """Planted and fixed must compute the same, as exactly as the numbers allow."""
    results = []
    for fixed in (False, True):
        service = Service(SimpleNamespace(fixed=fixed)).begin()
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
    parser.add_argument("--check", action="store_true", help="compare the results of both")
    options = parser.parse_args()
    if options.check:
        return check(options)
    #[serving]


if __name__ == "__main__":
    raise SystemExit(main())
'''


def memory_recipe(seed: int, device: str = "cuda") -> Recipe:
    """Consecutive seeds go through all faults and all that is healthy, so that two dozen have each."""
    cpu = device == "cpu"
    kinds: list[MemoryFault] = [one for one in (*LEAKS, *DEVICE, *SOUND) if not (cpu and one.gpu_only)]
    cycle, place = divmod(seed, len(kinds))
    random.Random(f"memory cycle {cycle}").shuffle(kinds)
    choose = random.Random(f"memory seed {seed}")
    planted = kinds[place]
    # With nothing else, the cache of keys and values is what there is to blame.
    family = next(one for one in FAMILIES if one.name == "decode") if planted is PLAIN else choose.choice(FAMILIES)
    sizes: Sizes = dict(family.small)
    for name, factors in (SMALL_FACTORS if cpu else FACTORS).items():
        if name in sizes:
            sizes[name] *= choose.choice(factors)
    sizes |= {name: choose.choice(small if cpu else large) for name, (large, small) in planted.amounts.items()}
    sizes |= {"REQUESTS": choose.choice(REQUESTS), "PAUSE_MS": choose.choice(PAUSES)}
    dtype = choose.choice(("float32", "float32", "bfloat16") if cpu else ("float32", "bfloat16", "float16"))
    marks = choose.choice([name for name in MARKS if not (cpu and name == "nvtx")])
    company = choose.choice(("alone", "alone", *frame.COMPANY))
    return Recipe(seed, family, sizes, dtype, (planted,), marks, company, device, cpu, choose.choice((0, 2, 4)))


def memory_source(recipe: Recipe) -> str:
    return whole_source(recipe, MARKS, MAIN)


def memory_row(recipe: Recipe) -> dict[str, Any]:
    (planted,) = recipe.faults
    return {
        "seed": recipe.seed,
        "family": recipe.family.name,
        "planted": planted.name,
        "expect": planted.expect,
        "accepted": list(planted.accepted),
        "healthy": planted.expect == HEALTHY,
        "marks": recipe.marks,
        "company": recipe.company,
        "dtype": recipe.dtype,
        "sizes": recipe.sizes,
    }
