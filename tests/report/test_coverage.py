"""The picture of what the first parts cover."""

from __future__ import annotations

import pytest

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.report.coverage import plot_coverage

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_lines_climb_to_the_share_of_all_and_are_labelled() -> None:
    figure = plot_coverage({"a": [1] * 50, "b": [3, 30, 7]}, 100)
    (axes,) = figure.axes
    first, second = (line.get_ydata() for line in axes.lines)
    assert [len(first), float(first[-1])] == [50, 50.0]
    assert list(second) == [30.0, 37.0, 40.0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a (50)", "b (3)"]
    assert {text.get_text() for text in axes.texts} == {"10 %"}
    assert axes.get_xscale() == "log"


def test_nothing_to_draw_is_an_error() -> None:
    for covered, num_ops in (({"a": []}, 10), ({"a": [1]}, 0)):
        with pytest.raises(
            ScoreError, match="The dataset has no parts whose coverage could be drawn"
        ):
            plot_coverage(covered, num_ops)
