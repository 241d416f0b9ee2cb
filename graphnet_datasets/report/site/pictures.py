"""Pictures of the graphs in records, for graphs that are still in a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import GraphNetError
from ...schema import sample_from_row
from ...storage.selection import read_rows
from ..graph_picture import write_graph
from .samples import SampleRecords

MAX_BOXES = 32


def write_pictures(
    samples: Iterable[SampleRecords], dataset: str | os.PathLike[str], directory: Path
) -> Mapping[str, str]:
    """Draw the samples that are in `dataset` and return the file names by sample id.

    A graph is drawn only if its structure hash equals the recorded hash, if there is one. Graphs
    that cannot be drawn are skipped, because their pages are useful without a picture.

    Raises:
        DatasetNotFoundError: The dataset does not exist.
    """
    wanted = {sample.id: sample for sample in samples}
    written: dict[str, str] = {}
    for row in read_rows(dataset, "all", list(wanted)):
        sample = wanted[row["id"]]
        if not _is_same(sample, row["structure_hash"]):
            continue
        name = f"{sample.slug}.svg"
        try:
            write_graph(sample_from_row(row), directory / name, MAX_BOXES)
        except GraphNetError:
            continue
        written[sample.id] = name
    return written


def _is_same(sample: SampleRecords, structure: str | None) -> bool:
    structure_hash = sample.facts["structure_hash"]
    return structure_hash is None or structure is None or structure_hash == structure
