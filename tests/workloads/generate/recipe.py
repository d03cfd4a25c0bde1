"""From a seed to what its program is: family, sizes, dtype, planted faults, marks, company. Consecutive seeds go
through all faults, so that a few dozen of them have each."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from generate import frame
from generate.families import TRANSFORMERS, Family, Sizes
from generate.families_dense import DENSE
from generate.faults import Fault
from generate.faults_compute import COMPUTE
from generate.faults_copies import COPIES, ITEM, LOGITS, ON_CPU, PAGEABLE
from generate.faults_host import COLLECT, DETOKENISE, HOST, LOGGING, TOKENISE
from generate.faults_launch import CHAIN, EXPERTS, GROWING_LIST, LAUNCH, ROWS, WEIGHTS
from generate.library import LIBRARY, LIBRARY_FAULTS

HEALTHY = "healthy"
FAULTS = (*HOST, *COPIES, *LAUNCH, *COMPUTE, *LIBRARY_FAULTS)
# Those that can stand in one program with another: their names do not meet.
PAIRED = (
    TOKENISE,
    DETOKENISE,
    LOGGING,
    COLLECT,
    PAGEABLE,
    ROWS,
    EXPERTS,
    CHAIN,
    WEIGHTS,
    ON_CPU,
    ITEM,
    LOGITS,
    GROWING_LIST,
)
# In every cycle through the faults, so many programs have none, and so many two.
HEALTHY_EACH = 5
TWO_EACH = 5


@dataclass(frozen=True)
class Recipe:
    seed: int
    family: Family
    sizes: Sizes
    dtype: str
    faults: tuple[Fault, ...]
    marks: str
    company: str
    device: str
    small: bool
    # Requests before the loop; many programs have none.
    warm: int = 4

    @property
    def name(self) -> str:
        return f"seed_{self.seed}"

    @property
    def fixable(self) -> bool:
        return any(fault.slots for fault in self.faults)

    def row(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "family": self.family.name,
            "faults": [fault.name for fault in self.faults],
            "accepted": [list(fault.accepted) for fault in self.faults],
            "marks": self.marks,
            "warm": self.warm,
            "company": self.company,
            "dtype": self.dtype,
            "sizes": self.sizes,
        }


def suits(family: Family, fault: Fault) -> bool:
    return fault.needs in family.offers and family.name not in fault.without


def recipe(seed: int, device: str = "cuda", small: bool = False, libraries: bool = True) -> Recipe:
    cpu = device == "cpu"
    families = (*TRANSFORMERS, *DENSE, *(LIBRARY if libraries else ()))
    faults = [fault for fault in FAULTS if any(suits(one, fault) for one in families) and not (cpu and fault.gpu_only)]
    paired = [fault for fault in PAIRED if fault in faults]
    kinds: list[Fault | str] = [*faults, *[HEALTHY] * HEALTHY_EACH, *["two"] * (TWO_EACH if len(paired) > 1 else 0)]
    cycle, place = divmod(seed, len(kinds))
    random.Random(f"cycle {cycle}").shuffle(kinds)
    choose = random.Random(f"seed {seed}")
    kind = kinds[place]
    planted: tuple[Fault, ...] = ()
    if isinstance(kind, Fault):
        planted = (kind,)
    elif kind == "two":
        planted = tuple(choose.sample(paired, 2))
    able = [one for one in families if all(suits(one, fault) for fault in planted)]
    if not planted:
        able = [one for one in able if "any" in one.offers]
    # A fault for several families comes with each as often; JAX has its own and few others.
    family = choose.choice(able)
    shape = next((fault.shape for fault in planted if fault.shape), "")
    sizes = family.sizes(choose, shape, small)
    for fault in planted:
        for name, (large, little) in fault.constants.items():
            sizes[name] = little if small else choose.choice(large)
    dtype = next((fault.dtype for fault in planted if fault.dtype), None) or choose.choice(family.dtypes)
    if cpu:
        dtype = "float32"
    marks = choose.choice(frame.CPU_MARKS if cpu or family.frame == "jax" else tuple(frame.MARKS))
    company = choose.choice(
        [name for name in ("alone", *frame.COMPANY) if not (family.frame == "jax" and name in frame.THREADED)]
    )
    warm = choose.choice((0, 2, 4, 4))
    return Recipe(seed, family, sizes, dtype, planted, marks, company, device, small, warm)
