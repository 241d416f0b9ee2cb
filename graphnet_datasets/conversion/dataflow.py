"""Data flow graphs of samples, in the formats of networkx and PyTorch Geometric.

A graph has a node per input and operator, one for the outputs, and an edge per use of a value.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConversionError
from ..sample import Sample, Value
from ..sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg, iterate_refs

OUTPUT = "output"
"""The kind, target and name of the output node."""


def make_nodes(sample: Sample) -> list[dict[str, Any]]:
    """Return the nodes in topological order: the inputs, the operators, then one for the outputs.

    `kind` is the role of an input, "operator" or "output", and `target` the operator. `dtype` and
    `shape` are those of the first result, with the sizes of the capture; they are None if they are
    unknown. `args` and `kwargs` are JSON in which `{"ref": n}` is the value of node n.

    >>> from graphnet_datasets.sample import Input, Op
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (2, 3))),),
    ...     (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> [(node["kind"], node["target"]) for node in make_nodes(relu)]
    [('input', 'input_0'), ('operator', 'torch.relu'), ('output', 'output')]
    """
    inputs = [
        _make_node(sample, item.role, name, value=item.value)
        for name, item in zip(sample.input_names, sample.inputs, strict=True)
    ]
    operators = [
        _make_node(sample, "operator", op.target, op.args, op.kwargs, (op.results or (None,))[0])
        for op in sample.ops
    ]
    return [*inputs, *operators, _make_node(sample, OUTPUT, OUTPUT, (sample.outputs,))]


def name_nodes(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the target of each node that is an operator, and the kind of other nodes."""
    return [node["target"] if node["kind"] == "operator" else node["kind"] for node in nodes]


def make_edges(sample: Sample) -> list[tuple[int, int, int]]:
    """Return an edge per use of a value: the node that makes it, the user, and the position.

    >>> from graphnet_datasets.sample import Input, Op
    >>> square = Sample("example/square", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.mul", (Ref(0), Ref(0))),), (Ref(1),))
    >>> make_edges(square)
    [(0, 1, 0), (0, 1, 1), (1, 2, 0)]
    """
    first = len(sample.inputs)
    users: list[Any] = [(op.args, DictArg(op.kwargs)) for op in sample.ops] + [sample.outputs]
    return [
        (source, first + number, position)
        for number, arguments in enumerate(users)
        for position, source in enumerate(iterate_refs(arguments))
    ]


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
    names = name_nodes(nodes)
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


def _make_node(
    sample: Sample,
    kind: str,
    target: str,
    args: tuple[Arg, ...] = (),
    kwargs: tuple[tuple[str, Arg], ...] = (),
    value: Value | None = None,
) -> dict[str, Any]:
    shape = None if value is None else sample.shape_of(value)
    return {
        "kind": kind,
        "target": target,
        "args": json.dumps([_plain(argument) for argument in args]),
        "kwargs": json.dumps({name: _plain(argument) for name, argument in kwargs}),
        "dtype": None if value is None else value.dtype,
        "shape": None if shape is None else list(shape),
    }


def _plain(argument: Arg) -> Any:
    """Return a JSON-compatible argument; constants without a JSON form become strings."""
    match argument:
        case Ref(index):
            return {"ref": index}
        case tuple():
            return [_plain(item) for item in argument]
        case ListArg(items):
            return [_plain(item) for item in items]
        case DictArg(items):
            return {key: _plain(item) for key, item in items}
        case SliceArg(start, stop, step):
            return {"slice": [_plain(part) for part in (start, stop, step)]}
        case Named(kind, name):
            return {kind: name}
        case float() if not math.isfinite(argument):
            return str(argument)
        case None | bool() | int() | float() | str():
            return argument
    return str(argument)
