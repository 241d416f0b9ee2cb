"""Plots of the best time against the duration of a search."""

from __future__ import annotations

from pathlib import Path

from ...atomic import replaced
from ...errors import MissingExtraError
from ...terminal import printable
from .config import TuningResult


def plot_curve(result: TuningResult, path: str | Path, title: str = "") -> None:
    """Plot all candidates and the best time so far; the file suffix selects the format.

    The settings are matplotlib's defaults, not those of a `matplotlibrc` in the working directory.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib import style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "report", "Drawing a tuning curve") from error
    with style.context("default"):
        figure = Figure(figsize=(6, 3.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        timed = [candidate for candidate in result.candidates if candidate.times_ms]
        axes.plot(
            [candidate.at_s for candidate in timed],
            [candidate.median_ms for candidate in timed],
            ".",
            color="0.6",
        )
        points = result.curve()
        axes.step([x for x, _ in points], [y for _, y in points], where="post", color="C0")
        axes.set(
            xlabel="seconds of tuning",
            ylabel="median time, ms",
            yscale="log",
            title=printable(title),
        )
        path = Path(path)
        path = path if path.suffix else path.with_suffix(".png")
        with replaced(path) as place:
            figure.savefig(place, format=path.suffix[1:])
