"""The share of a dataset that its first N parts cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ScoreError
from .style import WIDTH_INCHES, import_figure, line_style, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT_INCHES = 3.2
MARKED = (10, 100, 1_000, 10_000, 100_000)
"""Numbers of parts at which a line has a marker, labelled with its share."""


def plot_coverage(covered: Mapping[str, Sequence[int]], num_ops: int) -> Figure:
    """Plot the share of all operators that the first N parts cover.

    `covered` contains, for each line, the number of operators that each part represents at all its
    places; the parts are plotted in this order. `num_ops` is the number of operators in the
    dataset.

    Raises:
        ScoreError: There are no parts or no operators.
        MissingExtraError: matplotlib is not installed.

    >>> figure = plot_coverage({"typical": [30, 60, 5]}, 100)
    >>> [round(float(share), 2) for share in figure.axes[0].lines[0].get_ydata()]
    [60.0, 90.0, 95.0]
    """
    if num_ops < 1 or not all(covered.values()):
        raise ScoreError(
            "The dataset has no parts whose coverage could be drawn. Choose another dataset."
        )
    with settings():
        figure = import_figure()(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        axes = figure.subplots()
        for index, (name, counts) in enumerate(covered.items()):
            shares = 100 * np.cumsum(sorted(counts, reverse=True)) / num_ops
            marked = [number - 1 for number in MARKED if number <= len(shares)]
            places = np.arange(1, len(shares) + 1)
            style = line_style(index)
            axes.plot(places, shares, label=f"{name} ({len(shares):,})", markevery=marked, **style)
            for place in marked:
                axes.annotate(
                    f"{shares[place]:.0f} %",
                    (place + 1, shares[place]),
                    textcoords="offset points",
                    # Labels of the first line are above it, the others below theirs, where there is
                    # space.
                    xytext=(-4, 5) if index == 0 else (6, -10),
                    ha="right" if index == 0 else "left",
                    color=style["color"],
                    fontsize=8,
                )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0, 105)
        axes.set_xlabel("first N parts, most operators first")
        axes.set_ylabel("operators covered (%)")
        axes.legend(loc="upper left")
    return figure
