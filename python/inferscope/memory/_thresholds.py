"""How full memory has to be for an alert."""

from __future__ import annotations

import math
from dataclasses import dataclass

# As other tools of this kind call them, in percent.
PERCENT = {"memory_warning_percent": "warning", "memory_critical_percent": "critical"}


@dataclass(frozen=True)
class Thresholds:
    """Shares of the device's memory, 0 to 1. None: never. ValueError where they contradict each other."""

    warning: float | None = 0.8
    critical: float | None = 0.95

    def __post_init__(self) -> None:
        for name in ("warning", "critical"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and 0 < value <= 1):
                raise ValueError(f"the {name} threshold must be more than 0 and at most 1 (1 is full), got {value}")
        if self.warning is not None and self.critical is not None and self.warning >= self.critical:
            raise ValueError(
                f"the warning threshold ({self.warning:g}) must be below the critical one ({self.critical:g})"
            )

    def changed(self, name: str, value: float | None) -> Thresholds:
        """With another `warning` or `critical`, or by their names in percent."""
        if name in PERCENT:
            name, value = PERCENT[name], None if value is None else value / 100
        if name not in ("warning", "critical"):
            raise ValueError(f"unknown threshold {name!r}: use warning, critical, {' or '.join(PERCENT)}")
        return Thresholds(**{"warning": self.warning, "critical": self.critical, name: value})

    def flags(self) -> list[str]:
        """As the command takes them."""
        return [
            f"--{name}={'off' if value is None else repr(float(value))}"
            for name, value in (("warn", self.warning), ("critical", self.critical))
        ]
