"""Grids of panels, and the names of lines beside their ends or in a legend below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .style import WIDTH_INCHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_COLUMNS = 3
LABEL_POINTS = 8
"""Size of the labels beside the lines, in points."""
LINE_HEIGHT = 1.35
"""Least distance of two labels, in multiples of their size."""


def make_panels(
    figure_type: type[Figure], num_panels: int, height: float, max_columns: int = MAX_COLUMNS
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of panels of this height in inches, which share the y axis."""
    num_columns = min(num_panels, max_columns)
    num_rows = math.ceil(num_panels / num_columns)
    figure = figure_type(figsize=(WIDTH_INCHES, height * num_rows + 0.5))
    # A small margin prevents the last tick label from being cut off.
    figure.set_layout_engine("constrained", rect=(0, 0.01, 0.985, 0.98))
    grid = figure.subplots(num_rows, num_columns, squeeze=False, sharey=True)
    axes = list(grid.flat)
    for unused in axes[num_panels:]:
        unused.remove()
    return figure, axes[:num_panels]


def label_left(axes: Sequence[Axes], label: str) -> None:
    """Label the vertical axis of each row, which its panels share."""
    for axis in axes:
        spec = axis.get_subplotspec()
        if spec is not None and spec.is_first_col():
            axis.set_ylabel(label, fontsize=9, labelpad=8)  # small pictures need the gap


def label_bottoms(axes: Sequence[Axes], label: str) -> None:
    """Label the horizontal axis of the last panel of each column."""
    columns: dict[int, Axes] = {}
    for axis in axes:
        spec = axis.get_subplotspec()
        if spec is not None:
            columns[spec.colspan.start] = axis
    for axis in columns.values():
        axis.set_xlabel(label, fontsize=8)


def label_lines(figure: Figure, axis: Axes, lines: Mapping[str, Any]) -> None:
    """Write the name of each line beside its end, moved up or down where names would overlap."""
    low, high = (math.log(bound) for bound in axis.get_ylim())
    ends = {
        name: (math.log(line.get_ydata()[-1]) - low) / (high - low)
        for name, line in lines.items()
        if len(line.get_ydata()) and line.get_ydata()[-1] > 0
    }
    figure.draw_without_rendering()  # computes the height of the axes
    height = axis.get_window_extent().height / figure.dpi * 72
    places = spread(list(ends.values()), LABEL_POINTS * LINE_HEIGHT / height)
    for (name, end), place in zip(ends.items(), places, strict=True):
        line = lines[name]
        colour = line.get_color()
        axis.plot(
            [1.005, 1.03, 1.045], [min(max(end, 0.0), 1.0), place, place], color=colour,
            linewidth=0.7, transform=axis.transAxes, clip_on=False,
        )  # fmt: skip
        axis.plot(
            [1.045, 1.065, 1.085], [place] * 3, color=colour, linestyle=line.get_linestyle(),
            marker=line.get_marker(), markevery=[1], transform=axis.transAxes, clip_on=False,
        )  # fmt: skip
        axis.text(
            1.1, place, name, transform=axis.transAxes, va="center", size=LABEL_POINTS,
            color=colour,
        )  # fmt: skip


def spread(wanted: Sequence[float], least: float) -> list[float]:
    """Return places near the wanted ones, between 0 and 1 if they fit, at least `least` apart.

    Neighbours that are too close form a group around the mean of their wanted places.

    >>> [round(place, 2) for place in spread([0.5, 0.5, 0.9], 0.1)]
    [0.45, 0.55, 0.9]
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    groups: list[list[int]] = []
    starts: list[float] = []
    for index in order:
        group = [index]
        start = _start(group, wanted, least)
        while groups and starts[-1] + least * len(groups[-1]) > start:
            group = groups.pop() + group
            starts.pop()
            start = _start(group, wanted, least)
        groups.append(group)
        starts.append(start)
    places = [0.0] * len(wanted)
    for group, start in zip(groups, starts, strict=True):
        for step, index in enumerate(group):
            places[index] = start + least * step
    return places


def _start(group: Sequence[int], wanted: Sequence[float], least: float) -> float:
    middle = sum(wanted[index] for index in group) / len(group)
    length = least * (len(group) - 1)
    return max(min(middle - length / 2, 1 - length), 0.0)


def add_legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Add a legend below the panels in as many columns as fit, and increase the figure for it."""
    columns = max(1, min(len(labels), 4, 118 // (max(map(len, labels)) + 7)))
    height = math.ceil(len(labels) / columns) * LABEL_POINTS * 1.7 / 72
    figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + height)
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, fontsize=LABEL_POINTS)
