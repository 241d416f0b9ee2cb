"""Pages of `docs/` with generated tables between two markers, and their pictures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from graphnet_datasets.atomic import write_bytes, write_text
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.report.style import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_between(path: Path, begin: str, end: str, lines: Iterable[str]) -> None:
    """Replace the lines between `begin` and `end` in a page.

    Raises:
        GraphNetError: the page does not have the first marker before the second.
    """
    before, first, rest = path.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise GraphNetError(
            f"`{path}` has no lines `{begin}` and `{end}`. Add them around the place of the table."
        )
    write_text(path, "\n".join([before + begin, *lines, end + after]))


def write_picture(figure: Figure, path: Path) -> Path:
    """Write a picture as SVG, equal bytes for equal figures."""
    with tempfile.TemporaryDirectory() as folder:
        written = save(figure, folder, path.stem)
        (picture,) = (path for path in written if path.suffix == ".svg")
        return write_bytes(path, picture.read_bytes())
