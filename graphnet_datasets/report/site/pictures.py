"""Pictures and searchable views of the graphs in records, for graphs still in a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import GraphNetError
from ...sample import Sample
from ...sample.targets import base_name
from ...schema import sample_from_row
from ...storage.selection import read_rows
from ..folding import fold
from ..graph_picture import write_graph
from .chunks import write_chunk
from .samples import SampleRecords

MAX_BOXES = 32
MAX_VIEW_BOXES = 400
"""Maximum number of boxes of a view; graphs with more operators are folded by module."""
MAX_NAMES = 60
"""Maximum number of different operators of a box that can be searched for."""


def write_pictures(
    samples: Iterable[SampleRecords], dataset: str | os.PathLike[str], site: Path
) -> Mapping[str, str]:
    """Draw the samples that are in `dataset` and return the names of the pictures by sample id.

    The pictures go to `pictures/`, and the boxes and edges for the script of the page to `data/`.
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
            graph = sample_from_row(row)
            write_graph(graph, site / "pictures" / name, MAX_BOXES)
            chunk = f"graph-{sample.slug}"
            write_chunk(site / "data" / f"{chunk}.js", chunk, graph_columns(graph))
        except GraphNetError:
            continue
        written[sample.id] = name
    return written


def graph_columns(sample: Sample, max_boxes: int = MAX_VIEW_BOXES) -> dict[str, list[Any]]:
    """Return the boxes and the edges of a sample as columns, for the script that draws them.

    `operators` contains the names of the operators in each box, `source` and `target` the numbers
    of the boxes of each edge, and `shape` the shape of each box's output.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample("example/relu", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),), (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> columns = graph_columns(relu)
    >>> columns["title"], columns["source"], columns["target"], columns["operators"][1]
    (['input_0', 'relu', 'output'], [0, 1], [1, 2], 'relu')
    """
    folded = fold(sample, max_boxes)
    operators = []
    for box in folded.boxes:
        names = dict.fromkeys(base_name(op.target) for op in sample.ops[box.start : box.stop])
        operators.append(", ".join(list(names)[:MAX_NAMES]))
    return {
        "title": [
            f"{box.title} x {box.times}" if box.times > 1 else box.title for box in folded.boxes
        ],
        "kind": [box.kind for box in folded.boxes],
        "detail": [box.detail for box in folded.boxes],
        "shape": [box.shape for box in folded.boxes],
        "num_ops": [box.num_ops for box in folded.boxes],
        "operators": operators,
        "source": [source for source, _ in folded.edges],
        "target": [target for _, target in folded.edges],
    }


def _is_same(sample: SampleRecords, structure: str | None) -> bool:
    structure_hash = sample.facts["structure_hash"]
    return structure_hash is None or structure is None or structure_hash == structure
