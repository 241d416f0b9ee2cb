"""Texts of `docs/` whose tables are written anew between two markers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphnet_datasets.atomic import write_text
from graphnet_datasets.errors import GraphNetError


def write_between(path: Path, begin: str, end: str, lines: Iterable[str]) -> None:
    """Replace what stands between the lines `begin` and `end` of a text; the rest stays.

    Raises:
        GraphNetError: the text does not hold the first marker before the second.
    """
    before, first, rest = path.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise GraphNetError(
            f"`{path}` has no lines `{begin}` and `{end}`. Put them where the table goes."
        )
    write_text(path, "\n".join([before + begin, *lines, end + after]))
