"""Features of graphs and schedules for simple models, and graphs for graph networks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..conversion.dataflow import make_edges, make_nodes, name_nodes
from ..sample import Sample

SIZE_COLUMNS = (
    "num_ops", "num_params", "num_inputs", "num_outputs", "input_bytes", "flops", "bytes_moved",
    "arithmetic_intensity", "peak_memory_bytes",
)  # fmt: skip
GRAPH_COLUMNS = (*SIZE_COLUMNS, "dtype", "op_histogram")
"""The columns that `graph_features` reads."""

Floats = npt.NDArray[np.float32]


def graph_features(rows: Sequence[Mapping[str, Any]]) -> tuple[Floats, list[str]]:
    """Return float32 [rows, features] and the names of the features.

    They are the columns of `SIZE_COLUMNS`, whether the graph computes in 16 bits, and the number of
    each operator. Sizes and numbers are encoded as log2(1 + x), unknown sizes as 0.

    >>> row = {"num_ops": 3, "dtype": "float32", "op_histogram": [{"target": "relu", "count": 3}]}
    >>> features, names = graph_features([row])
    >>> features[0, names.index("num_ops")], features[0, names.index("relu")]
    (np.float32(2.0), np.float32(2.0))
    """
    targets = sorted({entry["target"] for row in rows for entry in row["op_histogram"]})
    place = {target: position for position, target in enumerate(targets)}
    features = np.zeros((len(rows), len(SIZE_COLUMNS) + 1 + len(targets)), np.float32)
    first = len(SIZE_COLUMNS) + 1
    for number, row in enumerate(rows):
        features[number, : len(SIZE_COLUMNS)] = [_log(row.get(name)) for name in SIZE_COLUMNS]
        features[number, first - 1] = row["dtype"] in ("float16", "bfloat16")
        for entry in row["op_histogram"]:
            features[number, first + place[entry["target"]]] = _log(entry["count"])
    return features, [*SIZE_COLUMNS, "is_16_bit", *targets]


@dataclasses.dataclass(frozen=True)
class Graph:
    """The data flow of a sample for a graph network.

    `names` are the operators, or the roles of the inputs, of the n nodes; `sizes` is float32 [n, 2]
    with log2(1 + number of elements) of a node's value and whether it is known; `edges` is int64
    [2, e], from the node that makes a value to its user.
    """

    names: tuple[str, ...]
    sizes: Floats
    edges: npt.NDArray[np.int64]


def make_graph(sample: Sample) -> Graph:
    """Return the data flow of a sample.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (7,))),),
    ...     (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> graph = make_graph(relu)
    >>> graph.names, graph.sizes[0].tolist(), graph.edges.tolist()
    (('input', 'torch.relu', 'output'), [3.0, 1.0], [[0, 1], [1, 2]])
    """
    nodes = make_nodes(sample)
    shapes = [node["shape"] for node in nodes]
    return Graph(
        tuple(name_nodes(nodes)),
        np.array(
            [(0, 0) if shape is None else (_log(math.prod(shape)), 1) for shape in shapes],
            np.float32,
        ),
        np.array([edge[:2] for edge in make_edges(sample)], np.int64).reshape(-1, 2).T,
    )


def _log(value: float | None) -> float:
    return math.log2(1 + max(value or 0, 0))
