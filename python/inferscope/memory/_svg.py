"""Lines and bars as SVG, without a library. All text is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from ._bytes import format_bytes

COLOURS = ("#2f6fde", "#d9772b", "#2f9e6e", "#b0449b", "#7a6ad8", "#c0392b")
_WIDTH, _HEIGHT = 900, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 20, 40, 40
#: More points than pixels are not seen, and make a page slow.
_MOST_POINTS = 1200
_MOST_BARS = 40

Series = Mapping[str, Sequence[tuple[float, float]]]


def lines(title: str, series: Series, marks: Sequence[tuple[float, str]] = ()) -> str:
    """Bytes over seconds; `marks` are moments with their names."""
    drawn = {name: _fewer([p for p in points if all(map(math.isfinite, p))]) for name, points in series.items()}
    drawn = {name: points for name, points in drawn.items() if points}
    if not drawn:
        return _empty(title)
    times = [time for points in drawn.values() for time, _ in points]
    first, last = min(times), max(times)
    top = max(value for points in drawn.values() for _, value in points) or 1.0
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(time: float) -> float:
        return _LEFT + (time - first) / ((last - first) or 1.0) * wide

    def y(value: float) -> float:
        return _TOP + high - max(value, 0.0) / top * high

    parts = []
    for step in range(5):
        value = top * step / 4
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid"/>'
        )
        parts.append(_text(_LEFT - 8, y(value) + 4, format_bytes(value, 1), "end"))
        at = first + (last - first) * step / 4
        parts.append(_text(x(at), _HEIGHT - 14, f"{at - first:.3g} s", "middle"))
    for time, name in marks[:_MOST_BARS]:
        if first <= time <= last:
            parts.append(f'<line x1="{x(time):.1f}" x2="{x(time):.1f}" y1="{_TOP}" y2="{_TOP + high}" class="mark"/>')
            parts.append(_text(x(time) + 3, _TOP + 10, name[:40], "start"))
    for number, (name, points) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(time):.1f},{y(value):.1f}" for time, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(_LEFT + 150 * number, 32, name[:24], "start", colour))
    return _drawing(title, _HEIGHT, parts)


def bars(title: str, values: Mapping[str, float]) -> str:
    """One bar a name, the largest first; those that do not fit are counted."""
    ordered = sorted(values.items(), key=lambda item: -item[1])
    if not ordered:
        return _empty(title)
    most = max(abs(value) for _, value in ordered) or 1.0
    parts = []
    for number, (name, value) in enumerate(ordered[:_MOST_BARS]):
        at = _TOP + 24 * number
        wide = abs(value) / most * (_WIDTH - 420)
        parts.append(_text(290, at + 13, name[-44:], "end"))
        parts.append(f'<rect x="300" y="{at}" width="{wide:.1f}" height="16" fill="{COLOURS[value < 0]}"/>')
        parts.append(_text(306 + wide, at + 13, format_bytes(value), "start"))
    if len(ordered) > _MOST_BARS:
        parts.append(_text(300, _TOP + 24 * _MOST_BARS + 13, f"and {len(ordered) - _MOST_BARS} more", "start"))
    return _drawing(title, _TOP + 24 * (min(len(ordered), _MOST_BARS) + 1) + 10, parts)


def page(title: str, drawings: Sequence[str]) -> str:
    """A page with nothing from elsewhere."""
    body = "\n".join(f"<figure>{drawing}</figure>" for drawing in drawings)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>body{font:14px system-ui,sans-serif;max-width:960px;margin:2em auto}figure{margin:2em 0}</style>"
        f"</head><body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _drawing(title: str, height: float, parts: Sequence[str]) -> str:
    style = ".grid{stroke:#ddd}.mark{stroke:#888;stroke-dasharray:3 3}text{font:11px sans-serif;fill:#333}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img">'
        f"<title>{_safe(title)}</title><style>{style}</style>"
        f"{_text(_LEFT, 16, title, 'start')}{''.join(parts)}</svg>"
    )


def _empty(title: str) -> str:
    return _drawing(title, 80, [_text(_LEFT, 50, "nothing was measured", "start")])


def _text(x: float, y: float, text: str, anchor: str, colour: str | None = None) -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{fill}>{_safe(text)}</text>'


def _safe(text: str) -> str:
    """XML has no control characters, not even escaped."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))


def _fewer(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most so many points: of each stretch its highest, for it is peaks that matter."""
    ordered = sorted(points)
    size = math.ceil(len(ordered) / _MOST_POINTS) or 1
    return [max(ordered[at : at + size], key=lambda point: point[1]) for at in range(0, len(ordered), size)]
