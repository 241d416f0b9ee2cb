"""Shipping of the full dataset: captured graphs and embedded graphs in the package."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.schema.tables import DUPLICATES

from .capturing import BUILDER, Capture
from .catalog import read_catalog
from .choosing import LEFT_OUT_LICENSES
from .full import Graph, read_log, write_full
from .keeping import kept_columns
from .libraries import LIBRARIES
from .placing import PIECE, Pending, standing
from .resplitting import drop_workloads, resplit
from .starter import CATALOGS, write_card
from .subgraphs import drop_parts, stale_parents

MAX_BYTES = 60 * 2**20
"""Size limit of the embedded dataset in the wheel."""


def ship(
    captures: Iterable[Capture],
    out: Path,
    waiting: Collection[str] = (),
    *,
    is_regrouped: bool = False,
) -> list[Graph]:
    """Write the dataset of the package and its card; return the graphs captured for it.

    Models of libraries with a stricter licence than this package's are left out. Graphs in `out` of
    the embedded catalogs, and of the models `waiting` for a capture, are kept unless they were
    captured again. Checks and calibration of an existing graph with the same signature are kept;
    parts that their graphs no longer contain are removed from the tables of subgraphs. With
    `is_regrouped`, all splits are chosen anew.

    Raises:
        GraphNetError: the dataset is larger than `MAX_BYTES`, or a piece of a model is missing.
    """
    chosen = [capture for capture in captures if not is_left_out(capture.entry.library)]
    graphs = write_full(
        chosen,
        out,
        _standing(out, waiting),
        kept_columns(out),
        standing_duplicates=standing_duplicates(out, waiting),
        is_regrouped=is_regrouped,
    )
    if is_regrouped:
        resplit(out)
    drop_parts(out, stale_parents(out))
    drop_workloads(out)
    write_card(out)
    size = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    if size > MAX_BYTES:
        raise GraphNetError(
            f"The dataset in `{out}` takes {size} bytes; at most {MAX_BYTES} may be embedded. Omit "
            "sources or records."
        )
    return graphs


def standing_duplicates(out: Path, waiting: Collection[str]) -> list[dict[str, Any]]:
    """Return the duplicates that are listed at `out`, of models `waiting` for a capture."""
    return [row for row in read_log(out, DUPLICATES) if PIECE.sub("", row["id"]) in waiting]


def is_left_out(library: str) -> bool:
    """Return whether a library's models may not be shipped in a package of another licence.

    >>> is_left_out("ultralytics"), is_left_out("timm")
    (True, False)
    """
    return LIBRARIES[library].license in LEFT_OUT_LICENSES


def _standing(out: Path, waiting: Collection[str]) -> list[Pending]:
    """Return the rows at `out` of the embedded catalogs and of models `waiting` for a capture."""
    entries = {entry.name: entry for name in CATALOGS for entry in read_catalog(BUILDER / name)}
    names = {*entries, *waiting}
    return [row for row in standing(out, entries) if (row.model or row.id) in names]
