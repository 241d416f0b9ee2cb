"""Files of program graphs, for training without TVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning.candidate import ProgramGraph
from graphnet_datasets.tuning.models.arrays import load_arrays, save_arrays

_KIND = "program graphs"


def save_graphs(path: str | Path, graphs: Mapping[str, ProgramGraph]) -> None:
    """Write graphs by `Candidate.key`; the file appears complete or not at all.

    Raises:
        TuningError: `graphs` is empty.
    """
    if not graphs:
        raise TuningError("`graphs` is empty. Pass at least one program graph.")
    own = list(graphs.values())
    arrays = {
        "nodes": np.concatenate([graph.nodes for graph in own]).astype(np.float32),
        "edges": np.concatenate([graph.edges for graph in own], axis=1).astype(np.int32),
        "edge_kinds": np.concatenate([graph.edge_kinds for graph in own]).astype(np.int8),
        "edge_features": np.concatenate([graph.edge_features for graph in own]).astype(np.float32),
        "log_runs": np.concatenate([graph.log_runs for graph in own]).astype(np.float32),
        "num_nodes": np.array([len(graph.nodes) for graph in own]),
        "num_edges": np.array([graph.edges.shape[1] for graph in own]),
    }
    save_arrays(path, arrays, {"kind": _KIND, "version": 2, "keys": list(graphs)})


def load_graphs(path: str | Path) -> dict[str, ProgramGraph]:
    """Return the graphs of a file by `Candidate.key`.

    Raises:
        TuningError: the file does not exist, or its graphs are invalid.
    """
    arrays, header = load_arrays(path, _KIND)
    try:
        keys = list(map(str, header["keys"]))
        nodes = np.split(arrays["nodes"], np.cumsum(arrays["num_nodes"])[:-1])
        cuts = np.cumsum(arrays["num_edges"])[:-1]
        edges = np.split(arrays["edges"].astype(np.int64), cuts, axis=1)
        kinds = np.split(arrays["edge_kinds"].astype(np.int64), cuts)
        features = np.split(arrays["edge_features"], cuts)
        runs = np.split(arrays["log_runs"], np.cumsum(arrays["num_nodes"])[:-1])
        columns = (nodes, edges, kinds, features, runs)
        graphs = {key: ProgramGraph(*parts) for key, *parts in zip(keys, *columns, strict=True)}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise TuningError(
            f"`{path}` contains invalid program graphs: {error}. Save them again with "
            "`save_graphs`."
        ) from error
    for key, graph in graphs.items():
        ends = graph.edges
        if ends.shape[0] != 2 or (
            ends.size and not 0 <= ends.min() <= ends.max() < len(graph.nodes)
        ):
            raise TuningError(
                f"An edge of the program graph {key} in `{path}` has an end that is not a node. "
                "Save the graphs again with `save_graphs`."
            )
    return graphs
