"""Boxes of how large graphs are."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.report import plot_distributions

GIVEN = {
    "operators": {
        "cv": {"mine": list(range(1, 102)), "theirs": [5, 6, 7]},
        "nlp": {"mine": [0, 0, 10, 20, 30, 40, 50]},
    },
    "parameters": {"cv": {"mine": [1e6] * 9}, "nlp": {}},
}


def test_a_row_for_each_task_and_a_colour_for_each_dataset() -> None:
    figure = plot_distributions(GIVEN)
    assert [axes.get_xlabel() for axes in figure.axes] == ["operators", "parameters"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["cv", "nlp"]
    (legend,) = figure.legends
    assert [label.get_text() for label in legend.get_texts()] == ["mine", "theirs"]
    assert all(axes.get_xscale() == "log" for axes in figure.axes)
    bottom, top = figure.axes[0].get_ylim()
    assert bottom > top  # the first task is the uppermost


def test_a_box_is_of_quartiles_without_zeros_and_few_graphs_are_points() -> None:
    axes = plot_distributions(GIVEN).axes[0]
    boxes = [np.asarray(patch.get_path().vertices) for patch in axes.patches]
    assert [(box[:, 0].min(), box[:, 0].max()) for box in boxes] == [(26, 76), (20, 40)]
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [list(np.asarray(line.get_xdata())) for line in points if len(line.get_xdata())] == [  # pyright: ignore[reportArgumentType]
        [5, 6, 7]
    ]
    whiskers = sorted({float(x) for line in axes.lines[:2] for x in np.asarray(line.get_xdata())})
    assert whiskers == [6, 26, 76, 96]


@pytest.mark.parametrize("given", [{}, {"operators": {}}, {"operators": {"cv": {}}}])
def test_nothing_to_draw_is_an_error(given: dict[str, dict[str, dict[str, list[float]]]]) -> None:
    with pytest.raises(ScoreError, match="no graphs whose sizes"):
        plot_distributions(given)
