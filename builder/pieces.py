"""Models that break into several graphs, which are separate rows that refer to each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.errors import GraphNetError

from .placing import read_columns

COLUMNS = ("id", "parent_id", "piece_index", "num_pieces", "split", "framework")


def check_pieces(directory: Path, duplicates: Collection[str] = ()) -> int:
    """Check that a dataset contains all pieces of each model in one split; return the model count.

    `duplicates` are the ids of graphs that are left out because an equal graph is included.

    Raises:
        GraphNetError: a piece is missing, occurs twice, or is in another split.
    """
    pieces: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in read_columns(directory, COLUMNS):
        if row["num_pieces"] is not None:
            pieces.setdefault((row["framework"], row["parent_id"]), []).append(row)
    for (_, model), rows in sorted(pieces.items()):
        if (fault := fault_of(model, rows, duplicates)) is not None:
            raise GraphNetError(f"{fault} Capture `{model}` again.")
    return len(pieces)


def fault_of(
    model: str, rows: Iterable[Mapping[str, Any]], duplicates: Collection[str] = ()
) -> str | None:
    """Return the problem of a model's pieces, or None.

    >>> row = {"id": "m/subgraph_0", "piece_index": 0, "num_pieces": 2, "split": "train"}
    >>> fault_of("m", [row])
    'Of the 2 pieces of `m` number 1 is missing.'
    >>> fault_of("m", [row], {"m/subgraph_1"})
    """
    rows = list(rows)
    counts = {row["num_pieces"] for row in rows}
    if len(counts) != 1:
        return f"The pieces of `{model}` say that there are {sorted(counts)}."
    (count,) = counts
    indices = sorted(row["piece_index"] for row in rows)
    if len(set(indices)) != len(indices):
        return f"A piece of `{model}` occurs twice."
    splits = {row["split"] for row in rows}
    if len(splits) != 1:
        return f"The pieces of `{model}` are in the splits {', '.join(sorted(splits))}."
    for index in range(count):
        if index not in indices and f"{model}/subgraph_{index}" not in duplicates:
            return f"Of the {count} pieces of `{model}` number {index} is missing."
    return None
