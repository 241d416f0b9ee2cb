"""The picture of a search: the best time so far over the seconds spent."""

from __future__ import annotations

from pathlib import Path

from ...atomic import replaced
from ...errors import MissingExtraError
from ...terminal import printable
from .config import TuningResult


def plot_curve(result: TuningResult, path: str | Path, title: str = "") -> None:
    """Draw every candidate and the best so far, to a file whose ending says the format.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "report", "Drawing a tuning curve") from error
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ran = [each for each in result.candidates if each.times_ms]
    axes.plot([each.at_s for each in ran], [each.median_ms for each in ran], ".", color="0.6")
    points = result.curve()
    axes.step([x for x, _ in points], [y for _, y in points], where="post", color="C0")
    axes.set(
        xlabel="seconds of tuning", ylabel="median time, ms", yscale="log", title=printable(title)
    )
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".png")
    with replaced(path) as place:
        figure.savefig(place, format=path.suffix[1:])
