"""The histogram of graph sizes in a dataset card.

It is plain SVG, so that pushing needs no plotting library, and equal data give equal files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

import numpy as np

from ..terminal import printable

# The palette of Okabe and Ito (https://jfly.uni-koeln.de/color/), which is distinguishable for
# colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 34, 48
FONT = 'font-family="sans-serif" font-size="12" fill="#333333"'


def draw_sizes(num_ops: Mapping[str, Sequence[int]]) -> str:
    """Return an SVG histogram of operators per graph, in powers of two, stacked by config.

    >>> svg = draw_sizes({"cv": [3, 17, 20], "nlp": [64]})
    >>> svg.startswith("<svg"), svg.count("<rect") - svg.count('rx="2"')
    (True, 4)
    """
    names = sorted(name for name, sizes in num_ops.items() if len(sizes))
    sizes = {name: np.maximum(1, np.asarray(num_ops[name], np.int64)) for name in names}
    # Bin k counts graphs with 2^k to 2^(k+1) - 1 operators.
    powers = {name: np.log2(values).astype(int) for name, values in sizes.items()}
    first = min((int(bins.min()) for bins in powers.values()), default=0)
    last = max((int(bins.max()) for bins in powers.values()), default=0)
    num_bins = last - first + 1
    counts = {name: np.bincount(bins - first, minlength=num_bins) for name, bins in powers.items()}
    totals = sum(counts.values(), np.zeros(num_bins, int))
    step = _round_step(int(totals.max()))
    top = step * -(-int(totals.max()) // step) or step
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#FFFFFF"/>',
        f'<text x="{LEFT}" y="20" {FONT}>Graphs by number of operators</text>',
    ]
    plot_height, plot_width = HEIGHT - TOP - BOTTOM, WIDTH - LEFT - RIGHT
    for value in range(0, top + 1, step):
        y = TOP + plot_height * (1 - value / top)
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + plot_width}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="#DDDDDD"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" '
            f"{FONT}>{value}</text>"
        )
    pitch = plot_width / num_bins
    for index in range(num_bins):
        x, y = LEFT + pitch * index, float(TOP + plot_height)
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" '
            f"{FONT}>{2 ** (first + index)}</text>"
        )
        for number, name in enumerate(names):
            height = plot_height * int(counts[name][index]) / top
            if height:
                y -= height
                parts.append(
                    f'<rect x="{x + 2:.1f}" y="{y:.1f}" width="{pitch - 4:.1f}" '
                    f'height="{height:.1f}" fill="{COLOURS[number % len(COLOURS)]}">'
                    f"<title>{escape(name)}: {counts[name][index]}</title></rect>"
                )
    parts.append(
        f'<text x="{LEFT + plot_width / 2}" y="{HEIGHT - 10}" text-anchor="middle" '
        f"{FONT}>operators in a graph</text>"
    )
    for number, name in enumerate(names):
        y = TOP + 18 * number
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 14}" y="{y}" width="12" height="12" rx="2" '
            f'fill="{COLOURS[number % len(COLOURS)]}"/><text x="{WIDTH - RIGHT + 32}" '
            f'y="{y + 10}" {FONT}>{escape(name)} ({len(sizes[name])})</text>'
        )
    return printable("\n".join([*parts, "</svg>", ""]))


def _round_step(largest: int) -> int:
    """Return the distance of ticks, 1, 2 or 5 times a power of ten, for at most six ticks."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if largest <= 5 * factor * step:
                return factor * step
        step *= 10
