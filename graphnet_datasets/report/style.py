"""Style of the pictures: legible in print and for colour-blind readers.

Run sets differ in colour, marker and line style, so that they remain distinct in black and white.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic import replaced
from ..errors import MissingExtraError
from ..terminal import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The palette of Okabe and Ito (https://jfly.uni-koeln.de/color/), strongest contrasts first, and
# three colours of Paul Tol's muted palette (https://personal.sron.nl/~pault/).
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
    *("#882255", "#999933", "#332288"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")

FORMATS = ("png", "svg")
DPI = 200
"""Dots per inch of PNG: 1,600 pixels for a width of 8 inches."""
WIDTH_INCHES = 8.0
"""Width of the pictures; their smallest letters are 10 pixels high at a width of 800 pixels."""

_SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "savefig.dpi": DPI,
    "savefig.facecolor": "white",
    # A fixed salt instead of a random one, so that equal runs produce equal files.
    "svg.hashsalt": "graphnet_datasets",
}


def import_figure() -> type[Figure]:
    """Return matplotlib's `Figure`, which draws without a display or global state.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "report", "Drawing plots") from error
    return Figure


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """Apply the picture settings temporarily, then restore the user's settings.

    The settings start from matplotlib's defaults, because matplotlib also reads a `matplotlibrc` in
    the working directory, which may turn on LaTeX or name files.
    """
    import_figure()
    from matplotlib import style

    with style.context(["default", _SETTINGS]):
        yield


def line_style(index: int) -> dict[str, Any]:
    """Return colour, marker and line of the run set with this number, the same in all pictures.

    >>> len({tuple(line_style(index).values()) for index in range(49)})
    49
    """
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
    }


Styles = Mapping[str, Mapping[str, Any]]
"""Colour, marker and line of each run set by its name."""


def styles_of(names: Sequence[str]) -> Styles:
    """Return the style of each run set, by its place among the names."""
    return {name: line_style(index) for index, name in enumerate(names)}


def ordered_names(
    panels: Mapping[str, Mapping[str, Any]], styles: Styles | None
) -> tuple[list[str], Styles]:
    """Return the run sets of all panels in the order of their styles, and the styles."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    if styles is None:
        return names, styles_of(names)
    return [name for name in styles if name in names], styles


def save(figure: Figure, directory: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a figure in every format and return the paths.

    Each file is written atomically. Control characters in labels are escaped.
    """
    from matplotlib.text import Text

    for label in figure.findobj(Text):
        if isinstance(label, Text):  # `findobj` is typed as returning artists
            label.set_text(printable(label.get_text()))
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix in FORMATS:
        path = directory / f"{name}.{suffix}"
        metadata = {"Date": None} if suffix == "svg" else {}
        with replaced(path) as place, settings():
            figure.savefig(place, format=suffix, metadata=metadata)
            # Keep the layout for the remaining formats, so that they match and are written faster.
            figure.set_layout_engine("none")
        paths.append(path)
    return paths
