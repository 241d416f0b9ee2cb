"""Measured statistics of initialised weights, for rows that were captured without weights.

A capture records statistics from the arguments of initialisers. `python -m builder weights` builds
each captured model again, runs its initialisers one weight at a time, and stores the measurements
beside the row, from where they enter the dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute

from graphnet_datasets.storage.table import read_table

from .capturing import Keys
from .catalog import Entry
from .libraries import LIBRARIES

pc: Any = pyarrow.compute

ENDING = ".weights.json"
"""Suffix of the file of measurements: names of weights to mean, std, minimum and maximum."""

INITIALISED = "initialised"
"""Value of `weights_origin` for weights with measured statistics."""


def path_of(row: Path) -> Path:
    """Return the file with the weights of a row."""
    return row.with_suffix(ENDING)


def waiting(entries: Iterable[Entry], build: Path, keys: Keys) -> Iterator[Entry]:
    """Yield captured entries of torch whose weights have not been measured."""
    for entry in entries:
        path = keys.path(entry, build)
        if LIBRARIES[entry.library].framework != "torch" or not path.is_file():
            continue
        if not path_of(path).is_file() and not _is_measured(path):
            yield entry


def _is_measured(path: Path) -> bool:
    """Return whether the weights of a row were measured during its capture."""
    inputs = pc.list_flatten(read_table(path, columns=["inputs"])["inputs"])
    is_weight = pc.equal(pc.struct_field(inputs, "role"), "parameter")
    measured = pc.fill_null(pc.struct_field(inputs, "is_measured"), False)
    return bool(pc.any(pc.and_(is_weight, measured)).as_py())


def read_weights(row: Path) -> dict[str, Sequence[float]]:
    """Return the measurements of a row, if any."""
    path = path_of(row)
    return json.loads(path.read_text()) if path.is_file() else {}


def with_weights(row: Mapping[str, Any], weights: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return a row with measured statistics of its weights and their origin."""
    inputs = []
    for graph_input in row["inputs"]:
        figures = (
            weights.get(graph_input["source_name"]) if graph_input["role"] == "parameter" else None
        )
        if figures is not None and not graph_input["is_measured"]:
            names = ("mean", "std", "min", "max")
            graph_input = {
                **graph_input,
                **dict(zip(names, figures, strict=True)),
                "is_measured": True,
            }
        inputs.append(graph_input)
    is_drawn = any(
        graph_input["role"] == "parameter" and graph_input["is_measured"] for graph_input in inputs
    )
    origin = INITIALISED if is_drawn else row.get("weights_origin")
    return {**row, "inputs": inputs, "weights_origin": origin}
