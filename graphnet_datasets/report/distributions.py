"""Size distributions of graphs by task: box plots of operators, parameters and work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ScoreError
from .style import COLOURS, WIDTH_INCHES, import_figure, settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES = 0.17
"""Height of one box."""
MIN_FOR_BOX = 5
"""Fewer graphs are drawn as points, because quartiles would mislead."""
WHISKERS = (5, 95)
"""Percentiles at the ends of the whiskers."""

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""One number per graph, by task and by dataset."""


def plot_distributions(quantities: Mapping[str, Values]) -> Figure:
    """Return a picture with one panel for each quantity, and in it a box for each task and dataset.

    A box spans the quartiles, its line is the median, and the whiskers are the 5th and the 95th
    percentile. Fewer than five graphs are drawn as points. The axes are logarithmic, so numbers
    that are not positive are omitted.

    Raises:
        ScoreError: `quantities` is empty.
        MissingExtraError: matplotlib is not installed.

    >>> figure = plot_distributions({"operators": {"cv": {"mine": [10, 20, 30, 40, 50]}}})
    >>> axes = figure.axes[0]
    >>> axes.get_xlabel(), [label.get_text() for label in axes.get_yticklabels()]
    ('operators', ['cv'])
    """
    tasks = list(dict.fromkeys(task for values in quantities.values() for task in values))
    names = list(
        dict.fromkeys(
            name
            for values in quantities.values()
            for by_name in values.values()
            for name in by_name
        )
    )
    if not tasks or not names:
        raise ScoreError("There are no graphs whose sizes could be drawn. Choose another dataset.")
    height = 0.8 + ROW_INCHES * len(tasks) * (len(names) + 0.8)
    with settings():
        figure = import_figure()(figsize=(WIDTH_INCHES, height), layout="constrained")
        panels = figure.subplots(1, len(quantities), sharey=True, squeeze=False)[0]
        for axes, (quantity, values) in zip(panels, quantities.items(), strict=True):
            _draw(axes, values, tasks, names)
            axes.set_xscale("log")
            axes.set_xlabel(quantity)
            axes.grid(visible=False, axis="y")
        middle = (len(names) - 1) / 2
        places = [_place(row, middle, len(names)) for row in range(len(tasks))]
        panels[0].set_yticks(places, tasks)
        panels[0].set_ylim(_place(len(tasks) - 1, len(names), len(names)), -1)
        from matplotlib.patches import Patch

        handles = [
            Patch(facecolor=COLOURS[index % len(COLOURS)], alpha=0.6, label=name)
            for index, name in enumerate(names)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(names))
    return figure


def _place(row: int, index: float, num_names: int) -> float:
    """Return the vertical position of a box: tasks from the top, and within a task its datasets."""
    return row * (num_names + 0.8) + index


def _draw(axes: Axes, values: Values, tasks: Sequence[str], names: Sequence[str]) -> None:
    for row, task in enumerate(tasks):
        for index, name in enumerate(names):
            samples = np.asarray(values.get(task, {}).get(name, ()), dtype=float)
            drawn = samples[samples > 0]
            colour = COLOURS[index % len(COLOURS)]
            place = _place(row, index, len(names))
            if len(drawn) < MIN_FOR_BOX:
                axes.plot(drawn, np.full(len(drawn), place), "o", color=colour, markersize=3)
                continue
            axes.boxplot(
                drawn, positions=[place], widths=0.75, orientation="horizontal", whis=WHISKERS,
                showfliers=False, patch_artist=True, manage_ticks=False,
                boxprops={"facecolor": colour, "alpha": 0.6, "edgecolor": colour},
                medianprops={"color": "black"},
                whiskerprops={"color": colour}, capprops={"color": colour},
            )  # fmt: skip
