"""What a fault is: text for slots of a program, with `FIX` where the text asks whether it is fixed, and the rules that
are right about it. The faults themselves stand by what they touch."""

from __future__ import annotations

from dataclasses import dataclass, field

from generate.template import Slots


@dataclass(frozen=True)
class Fault:
    name: str
    # What is planted, as one sentence.
    doc: str
    # The rule that names it.
    expect: str
    slots: Slots
    # Rules that say the same with the same fix.
    also: tuple[str, ...] = ()
    # What a family must offer.
    needs: str = "torch"
    shape: str = ""
    # Not on a CPU: there the fault costs nothing or means something else.
    gpu_only: bool = False
    # Constants: name to (values for a GPU, value where it is small).
    constants: dict[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    # As exactly as planted and fixed agree; None: as the dtype allows.
    tolerance: float | None = None
    # The program's dtype, where the fault is about it.
    dtype: str | None = None
    # Families that the fault makes no sense in.
    without: tuple[str, ...] = ()
    # The step ends so differently that only these steps are recorded.
    steps: int | None = None

    @property
    def accepted(self) -> tuple[str, ...]:
        return (self.expect, *self.also)
