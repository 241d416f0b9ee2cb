"""SVG pictures of schedules: a column per nest, with its loops from outermost to innermost."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from ...atomic import write_text
from ...terminal import printable
from .schedule import Nested, Schedule

_LINE, _GAP = 22, 24
_MIN_WIDTH, _LETTER = 260, 7.6
"""Width of a column, and of a letter of the bold font, in pixels."""
_INSET, _STATEMENT_INSET = 90, 95
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
    column = max([_MIN_WIDTH, *map(_width, schedule.nests)])
    width = len(schedule.nests) * (column + _GAP) + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        # Without a background, the letters would be black on the black of a dark notebook.
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, nest in enumerate(schedule.nests):
        parts += _column(place, nest, column)
    parts.append("</svg>\n")
    return printable("\n".join(parts))


def save_svg(schedule: Schedule, path: str | Path) -> None:
    """Write the SVG of a schedule to a file."""
    write_text(path, to_svg(schedule))


def _title(nest: Nested) -> str:
    return nest.note if len(nest.note) < 42 else f"{nest.note[:40]}…"


def _loop_labels(nest: Nested) -> list[str]:
    return [
        f"{loop.kind}{' (parallel)' if number < nest.num_parallel else ''}: {loop.name}"
        for number, loop in enumerate(nest.loops)
    ]


def _statement_labels(nest: Nested) -> list[str]:
    return [f"{statement.name}[{', '.join(statement.indices)}]" for statement in nest.statements]


def _width(nest: Nested) -> int:
    """Return the width in pixels that the labels of a nest need."""
    loops = [
        min(number * 6, _INSET) + 10 + len(label) * _LETTER
        for number, label in enumerate(_loop_labels(nest))
    ]
    statements = [_STATEMENT_INSET + len(label) * _LETTER for label in _statement_labels(nest)]
    return math.ceil(max([(len(_title(nest)) + 3) * _LETTER, *loops, *statements]))


def _column(place: int, nest: Nested, width: int) -> list[str]:
    left = _GAP + place * (width + _GAP)
    title = escape(_title(nest))
    parts = [f'<text x="{left}" y="{_GAP}" font-weight="bold">{place}: {title}</text>']
    top = _GAP + 8
    for number, (loop, label) in enumerate(zip(nest.loops, _loop_labels(nest), strict=True)):
        inset = min(number * 6, _INSET)
        border = 2.5 if number < nest.num_parallel else 0.7
        parts.append(
            f'<rect x="{left + inset}" y="{top}" width="{width - inset}" height="{_LINE - 3}" '
            f'fill="{_COLOURS.get(loop.kind, "#ffffff")}" stroke="#444" stroke-width="{border}"/>'
        )
        parts.append(f'<text x="{left + inset + 5}" y="{top + 14}">{escape(label)}</text>')
        top += _LINE
    for label in _statement_labels(nest):
        parts.append(f'<text x="{left + _STATEMENT_INSET}" y="{top + 14}">{escape(label)}</text>')
        top += _LINE
    return parts
