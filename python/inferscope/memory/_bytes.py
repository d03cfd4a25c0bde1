"""Sizes as people read them, and the units between which they are converted."""

from __future__ import annotations

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_STEP = 1024


def format_bytes(bytes_value: float, precision: int = 2) -> str:
    """`1.50 GB` of 1610612736; units are powers of 1024."""
    size = abs(float(bytes_value))
    unit = 0
    # Rounding must not print 1024.00 KB.
    while unit < len(_UNITS) - 1 and round(size, precision) >= _STEP:
        size /= _STEP
        unit += 1
    sign = "-" if bytes_value < 0 else ""
    return f"{sign}{size:.{0 if unit == 0 else precision}f} {_UNITS[unit]}"


def convert_bytes(value: float, from_unit: str, to_unit: str) -> float:
    """The same size in another unit: B, KB, MB, GB, TB or PB."""
    for unit in (from_unit, to_unit):
        if unit.upper() not in _UNITS:
            raise ValueError(f"unknown unit {unit!r}: use one of {', '.join(_UNITS)}")
    steps = _UNITS.index(from_unit.upper()) - _UNITS.index(to_unit.upper())
    return float(value * float(_STEP) ** steps)
