"""Small SVG charts that take their colours from the style sheet and support dark mode.

All text from records is escaped here, because pages include the charts unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 300, 46, 34, 12, 12
NUM_COLOURS, NUM_DASHES = 10, 4
TICKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)
BAR_WIDTH, BAR_HEIGHT = 150, 18

Points = Sequence[tuple[int, float]]


def line_style(index: int) -> str:
    """Return the CSS classes of a chart line; 20 lines differ in colour or dashes.

    >>> line_style(0), line_style(1), line_style(10), len({line_style(i) for i in range(20)})
    ('c0 d0', 'c1 d1', 'c0 d2', 20)
    """
    return f"c{index % NUM_COLOURS} d{index % NUM_DASHES}"


def line_chart(lines: Mapping[str, tuple[int, Points]], label: str) -> str:
    """Draw scores over t, one line per compiler, with names on hover and in the legend.

    `lines` maps a name to the number of its style and its points. The vertical axis is logarithmic.
    The SVG contains only numbers and escaped names.
    """
    shown = {
        name: (number, [(t, value) for t, value in points if value > 0])
        for name, (number, points) in lines.items()
    }
    drawn = [point for _, points in shown.values() for point in points]
    if not drawn:
        return ""
    first, last = min(t for t, _ in drawn), max(t for t, _ in drawn)
    low = math.log(min([1.0, *(value for _, value in drawn)]) / 1.15)
    high = math.log(max([1.0, *(value for _, value in drawn)]) * 1.15)

    def x(t: float) -> float:
        return LEFT + (t - first) / max(last - first, 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (high - math.log(value)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = []
    for tick in TICKS:
        if low <= math.log(tick) <= high:
            kind = "one" if tick == 1 else "grid"
            parts.append(
                f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" '
                f'y2="{y(tick):.1f}"/><text class="axis end" x="{LEFT - 6}" y="{y(tick) + 4:.1f}">'
                f"{tick:g}</text>"
            )
    for t in range(first, last + 1):
        if t % 2 == 0:
            parts.append(
                f'<text class="axis mid" x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 16}">{t}</text>'
            )
    parts.append(
        f'<text class="axis mid" x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - 4}">'
        "tolerance t, stricter to the left</text>"
    )
    for name, (index, points) in shown.items():
        path = " ".join(f"{x(t):.1f},{y(value):.1f}" for t, value in _steps(points))
        parts.append(
            f'<polyline class="line {line_style(index)}" points="{path}"><title>{escape(name)}'
            "</title></polyline>"
        )
    return _chart(parts, HEIGHT, label)


def _chart(parts: Sequence[str], height: int, label: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _steps(points: Points) -> list[tuple[int, float]]:
    """Turn the line into steps from t = 0 on, because only an integer t forgives an error.

    >>> _steps([(-1, 0.5), (0, 0.5), (1, 2.0)])
    [(-1, 0.5), (0, 0.5), (1, 0.5), (1, 2.0)]
    """
    polyline: list[tuple[int, float]] = []
    for t, value in points:
        if polyline and t > 0:
            polyline.append((t, polyline[-1][1]))
        polyline.append((t, value))
    return polyline


def score_bar(
    value: float | None, low: float | None, high: float | None, domain: tuple[float, float]
) -> str:
    """Draw a score as a dot and its interval as a line, on a logarithmic scale with a mark at 1."""
    if value is None or value <= 0:
        return ""
    least, greatest = (math.log(bound) for bound in domain)

    def x(value: float) -> float:
        place = (math.log(value) - least) / max(greatest - least, 1e-9)
        return 6 + min(max(place, 0.0), 1.0) * (BAR_WIDTH - 12)

    middle = BAR_HEIGHT / 2
    interval = ""
    if low is not None and high is not None and low > 0:
        interval = (
            f'<line class="interval" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{middle}" '
            f'y2="{middle}"/>'
        )
    return (
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" aria-hidden="true">'
        f'<line class="one" x1="{x(1):.1f}" x2="{x(1):.1f}" y1="0" y2="{BAR_HEIGHT}"/>{interval}'
        f'<circle class="dot" cx="{x(value):.1f}" cy="{middle}" r="4"/></svg>'
    )


def time_boxes(rows: Sequence[tuple[str, Sequence[float]]], label: str) -> str:
    """Draw the 10, 25, 50, 75 and 90 % quantiles of times in milliseconds, a row each."""
    rows = [(name, shares) for name, shares in rows if all(value > 0 for value in shares)]
    if not rows:
        return ""
    least = math.log(min(shares[0] for _, shares in rows) / 1.2)
    greatest = math.log(max(shares[-1] for _, shares in rows) * 1.2)
    left, step = 230, 24
    height = step * len(rows) + 26

    def x(value: float) -> float:
        return left + (math.log(value) - least) / (greatest - least) * (WIDTH - left - 12)

    parts = []
    for tick in _time_ticks(least, greatest):
        parts.append(
            f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="0" y2="{height - 22}"/>'
            f'<text class="axis mid" x="{x(tick):.1f}" y="{height - 6}">{tick:g} ms</text>'
        )
    for index, (name, (p10, p25, p50, p75, p90)) in enumerate(rows):
        y = step * index + step / 2
        short = name if len(name) <= 30 else f"{name[:29]}…"
        parts.append(
            f'<text class="axis end" x="{left - 10}" y="{y + 4:.1f}">{escape(short)}<title>'
            f'{escape(name)}</title></text><line class="interval" x1="{x(p10):.1f}" '
            f'x2="{x(p90):.1f}" y1="{y:.1f}" y2="{y:.1f}"/><rect class="box" x="{x(p25):.1f}" '
            f'y="{y - 6:.1f}" width="{max(x(p75) - x(p25), 1):.1f}" height="12"/>'
            f'<line class="median" x1="{x(p50):.1f}" x2="{x(p50):.1f}" y1="{y - 7:.1f}" '
            f'y2="{y + 7:.1f}"/>'
        )
    return _chart(parts, height, label)


def _time_ticks(least: float, greatest: float) -> list[float]:
    """Return round times between two logarithms: 1, 2 and 5 times powers of ten, five at most."""
    powers = range(math.floor(least / math.log(10)), math.ceil(greatest / math.log(10)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    ticks = [tick for tick in ticks if least <= math.log(tick) <= greatest]
    return ticks if len(ticks) <= 5 else ticks[:: -(-len(ticks) // 5)]
