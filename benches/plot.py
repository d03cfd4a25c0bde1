"""A plot of cost against size as SVG, both axes logarithmic: a cost that is linear in size is a line at the slope of
the grey ones."""

from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 640, 400, 70, 50, 34
COLOURS = ("#1b6ac9", "#c2571a", "#2f8f46")


def decades(values: list[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def draw(lines: dict[str, list[tuple[int, float]]], title: str) -> str:
    """`lines`: by name, points of (events, seconds)."""
    points = [point for line in lines.values() for point in line]
    x_low, x_high = decades([float(size) for size, _ in points])
    y_low, y_high = decades([seconds for _, seconds in points])

    def x(size: float) -> float:
        return LEFT + (math.log10(size) - x_low) / (x_high - x_low) * (WIDTH - LEFT - 20)

    def y(seconds: float) -> float:
        return HEIGHT - BELOW - (math.log10(seconds) - y_low) / (y_high - y_low) * (HEIGHT - BELOW - ABOVE)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<clipPath id="inside"><rect x="{LEFT}" y="{ABOVE}" width="{WIDTH - LEFT - 20}" '
        f'height="{HEIGHT - BELOW - ABOVE}"/></clipPath>',
    ]
    for power in range(x_low, x_high + 1):
        at, label = x(10**power), f"{10**power:,}"
        out.append(f'<path d="M{at:.1f} {ABOVE}V{HEIGHT - BELOW}" stroke="#eee"/>')
        out.append(f'<text x="{at:.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{label}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">events</text>')
    for power in range(y_low, y_high + 1):
        at = y(10.0**power)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - 20}" stroke="#eee"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    # Straight lines through nothing: seconds = c · events.
    for power in range(y_low - x_high, y_high - x_low + 1):
        ends = [(10.0**decade, 10.0 ** (decade + power)) for decade in (x_low, x_high)]
        path = "L".join(f"{x(size):.1f} {y(seconds):.1f}" for size, seconds in ends)
        out.append(f'<path d="M{path}" stroke="#ccc" stroke-dasharray="4 4" clip-path="url(#inside)"/>')
    for place, (name, line) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = "L".join(f"{x(size):.1f} {y(seconds):.1f}" for size, seconds in line)
        out.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        out += [
            f'<circle cx="{x(size):.1f}" cy="{y(seconds):.1f}" r="4" fill="{colour}"><title>{size:,} events: '
            f"{seconds:.2f} s</title></circle>"
            for size, seconds in line
        ]
        out.append(f'<text x="{LEFT + 12}" y="{ABOVE + 18 + place * 18}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])
