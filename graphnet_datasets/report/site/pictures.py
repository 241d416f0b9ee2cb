"""Pictures of the graphs that records are about, where a dataset still holds these graphs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import GraphNetError
from ...schema import sample_from_row
from ...storage.loading import load_dataset
from ..graph_picture import write_graph
from .samples import SampleRecords

MAX_BOXES = 32


def write_pictures(
    samples: Iterable[SampleRecords], dataset: str | os.PathLike[str], directory: Path
) -> Mapping[str, str]:
    """Draw the samples that `dataset` holds and return the names of the files by their ids.

    A graph is drawn only where its structure is that of the records, if they tell it. One that
    cannot be drawn is left out: a page of records is worth having without.

    Raises:
        DatasetNotFoundError: there is no such dataset.
    """
    wanted = {sample.id: sample for sample in samples}
    written: dict[str, str] = {}
    splits: Any = load_dataset(dataset, "all")
    for split in splits.values():
        ids = split.select_columns(["id", "structure_hash"]).with_format("arrow")[:]
        pairs = zip(ids["id"].to_pylist(), ids["structure_hash"].to_pylist(), strict=True)
        chosen = [
            index
            for index, (sample_id, structure) in enumerate(pairs)
            if sample_id in wanted and _is_same(wanted[sample_id], structure)
        ]
        for row in split.select(chosen):
            sample = wanted[row["id"]]
            name = f"{sample.slug}.svg"
            try:
                write_graph(sample_from_row(row), directory / name, MAX_BOXES)
            except GraphNetError:
                continue
            written[sample.id] = name
    return written


def _is_same(sample: SampleRecords, structure: str | None) -> bool:
    known = sample.facts["structure_hash"]
    return known is None or structure is None or known == structure
