"""SVG pictures of schedules: a column per nest, with its loops from outermost to innermost."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ...atomic import write_text
from ...terminal import printable
from .schedule import Nested, Schedule

_WIDTH, _LINE, _GAP = 260, 22, 24
_COLOURS = {
    "shared loop": "#b8d4f0",
    "tile": "#cfe3c8",
    "loop": "#e4e4e4",
    "block": "#f4e1b5",
    "phase": "#f6f6f6",
    "reduction": "#f3cfc6",
    "vector": "#d9c9ee",
    "point": "#ececec",
    "sequence": "#ffffff",
}


def to_svg(schedule: Schedule) -> str:
    """Draw a schedule as SVG: nests from left to right, parallel loops with a thick border.

    >>> from graphnet_datasets.tensor_comprehensions.polyhedral.schedule import Loop
    >>> picture = to_svg(Schedule((Nested((Loop("d0 by 32", "tile"),), (), 1, "a nest"),)))
    >>> picture.startswith("<svg"), "tile (parallel): d0 by 32" in picture
    (True, True)
    """
    heights = [(2 + len(nest.loops) + len(nest.statements)) * _LINE for nest in schedule.nests]
    height = max(heights, default=0) + 2 * _GAP
    width = len(schedule.nests) * (_WIDTH + _GAP) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    ]
    for place, nest in enumerate(schedule.nests):
        parts += _column(place, nest)
    parts.append("</svg>\n")
    return printable("\n".join(parts))


def save_svg(schedule: Schedule, path: str | Path) -> None:
    """Write the SVG of a schedule to a file."""
    write_text(path, to_svg(schedule))


def _column(place: int, nest: Nested) -> list[str]:
    left = _GAP + place * (_WIDTH + _GAP)
    note = nest.note if len(nest.note) < 42 else f"{nest.note[:40]}…"
    parts = [f'<text x="{left}" y="{_GAP}" font-weight="bold">{place}: {escape(note)}</text>']
    top = _GAP + 8
    for number, loop in enumerate(nest.loops):
        inset = min(number * 6, 90)
        border = 2.5 if number < nest.num_parallel else 0.7
        parts.append(
            f'<rect x="{left + inset}" y="{top}" width="{_WIDTH - inset}" height="{_LINE - 3}" '
            f'fill="{_COLOURS.get(loop.kind, "#ffffff")}" stroke="#444" stroke-width="{border}"/>'
        )
        label = f"{loop.kind}{' (parallel)' if number < nest.num_parallel else ''}: {loop.name}"
        parts.append(f'<text x="{left + inset + 5}" y="{top + 14}">{escape(label)}</text>')
        top += _LINE
    for statement in nest.statements:
        label = f"{statement.name}[{', '.join(statement.indices)}]"
        parts.append(f'<text x="{left + 95}" y="{top + 14}">{escape(label)}</text>')
        top += _LINE
    return parts
