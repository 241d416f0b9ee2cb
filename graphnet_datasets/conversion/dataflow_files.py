"""Data flow graphs in the formats of networkx and PyTorch Geometric, compared after loading."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConversionError
from ..sample import Sample
from .dataflow import make_edges, make_nodes


def write_networkx(sample: Sample, path: Path) -> None:
    """Write node-link JSON of a `networkx.MultiDiGraph`, and compare the loaded graph.

    Raises:
        ConversionError: the loaded graph differs from the sample.
    """
    networkx: Any = importlib.import_module("networkx")
    graph = networkx.MultiDiGraph(id=sample.id, framework=sample.framework, task=sample.task)
    nodes, edges = make_nodes(sample), make_edges(sample)
    graph.add_nodes_from(enumerate(nodes))
    graph.add_edges_from((source, user, place, {}) for source, user, place in edges)
    path.write_text(json.dumps(networkx.node_link_data(graph, edges="links")))
    loaded = networkx.node_link_graph(json.loads(path.read_text()), edges="links")
    is_equal = (
        [loaded.nodes[number] for number in range(loaded.number_of_nodes())] == nodes
        and sorted(loaded.edges(keys=True)) == sorted(edges)
        and networkx.is_directed_acyclic_graph(loaded)
    )
    if not is_equal:
        raise ConversionError("The loaded graph differs from the sample.")


def write_pyg(sample: Sample, path: Path) -> None:
    """Write the dictionary of a `torch_geometric.data.Data`, and compare the loaded graph.

    `op` is the index of each node's target in `targets`, and `num_elements` the number of elements
    of its value, -1 if it is unknown. `edge_position` is the position of the value among the user's
    operands.

    Raises:
        ConversionError: the loaded graph differs from the sample.
    """
    torch: Any = importlib.import_module("torch")
    data_class = importlib.import_module("torch_geometric.data").Data
    nodes, edges = make_nodes(sample), make_edges(sample)
    names = [node["target"] if node["kind"] == "operator" else node["kind"] for node in nodes]
    targets = sorted(set(names))
    sizes = [-1 if node["shape"] is None else math.prod(node["shape"]) for node in nodes]
    data = data_class(
        edge_index=torch.tensor([edge[:2] for edge in edges], dtype=torch.int64).reshape(-1, 2).t(),
        edge_position=torch.tensor([edge[2] for edge in edges], dtype=torch.int64),
        op=torch.tensor([targets.index(name) for name in names], dtype=torch.int64),
        num_elements=torch.tensor(sizes, dtype=torch.int64),
        num_nodes=len(nodes),
        targets=targets,
        sample_id=sample.id,
    )
    torch.save(data.to_dict(), path)
    loaded = data_class.from_dict(torch.load(path, weights_only=True))
    loaded.validate(raise_on_error=True)
    triples = zip(*loaded.edge_index.tolist(), loaded.edge_position.tolist(), strict=True)
    is_equal = (
        list(triples) == edges
        and [loaded.targets[place] for place in loaded.op.tolist()] == names
        and loaded.num_elements.tolist() == sizes
    )
    if not is_equal:
        raise ConversionError("The loaded graph differs from the sample.")


WRITERS: Mapping[str, Callable[[Sample, Path], None]] = {
    "networkx": write_networkx,
    "pyg": write_pyg,
}
