"""Data flow graphs: nodes, edges, and files that load to the same graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.conversion.dataflow import (
    make_edges,
    make_nodes,
    write_networkx,
    write_pyg,
)
from graphnet_datasets.errors import ConversionError
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref, SliceArg

ROWS = Value("float32", ("rows", 3))
SAMPLE = Sample(
    "test/arguments",
    "torch",
    "other",
    (Input("input", ROWS), Input("parameter", Value("float32", (3,)))),
    (
        Op("torch.cat", (ListArg((Ref(0), Ref(0))), 0)),
        Op("operator.getitem", (Ref(2), (SliceArg(None, 2, None), Ellipsis))),
        Op("torch.add", (Ref(3), Ref(1)), (("alpha", float("inf")),), results=(ROWS,)),
        Op("torch.Tensor.to", (Ref(4),), (("dtype", Named("dtype", "float64")),)),
    ),
    DictArg((("all", Ref(5)), ("rest", (Ref(2), 7)))),
    (Symbol("rows", 4, 1),),
)


def test_nodes_describe_inputs_operators_and_outputs() -> None:
    nodes = make_nodes(SAMPLE)
    assert [(node["kind"], node["target"]) for node in nodes] == [
        ("input", "input_0"),
        ("parameter", "parameter_0"),
        ("operator", "torch.cat"),
        ("operator", "operator.getitem"),
        ("operator", "torch.add"),
        ("operator", "torch.Tensor.to"),
        ("output", "output"),
    ]
    assert (nodes[0]["dtype"], nodes[0]["shape"]) == ("float32", [4, 3])
    assert (nodes[2]["dtype"], nodes[2]["shape"]) == (None, None)
    assert nodes[4]["shape"] == [4, 3]
    assert [json.loads(node["args"]) for node in nodes[2:]] == [
        [[{"ref": 0}, {"ref": 0}], 0],
        [{"ref": 2}, [{"slice": [None, 2, None]}, "Ellipsis"]],
        [{"ref": 3}, {"ref": 1}],
        [{"ref": 4}],
        [{"all": {"ref": 5}, "rest": [{"ref": 2}, 7]}],
    ]
    assert json.loads(nodes[4]["kwargs"]) == {"alpha": "inf"}
    assert json.loads(nodes[5]["kwargs"]) == {"dtype": {"dtype": "float64"}}


def test_each_use_is_an_edge() -> None:
    assert make_edges(SAMPLE) == [
        (0, 2, 0),
        (0, 2, 1),
        (2, 3, 0),
        (3, 4, 0),
        (1, 4, 1),
        (4, 5, 0),
        (5, 6, 0),
        (2, 6, 1),
    ]


def test_a_loaded_networkx_graph_has_all_nodes_and_edges(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    path = tmp_path / "graph.json"
    write_networkx(SAMPLE, path)
    graph = networkx.node_link_graph(json.loads(path.read_text()), edges="links")
    assert graph.graph == {"id": "test/arguments", "framework": "torch", "task": "other"}
    assert list(graph.edges(keys=True)) == sorted(make_edges(SAMPLE))
    assert graph.nodes[4]["target"] == "torch.add"


def test_a_graph_that_loads_differently_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    networkx = pytest.importorskip("networkx")
    load = networkx.node_link_graph

    def drop_an_edge(*arguments: Any, **options: Any) -> Any:
        graph = load(*arguments, **options)
        graph.remove_edge(2, 6)
        return graph

    monkeypatch.setattr(networkx, "node_link_graph", drop_an_edge)
    with pytest.raises(ConversionError, match="The loaded graph differs from the sample"):
        write_networkx(SAMPLE, tmp_path / "graph.json")


@pytest.mark.torch
@pytest.mark.slow
def test_a_loaded_pyg_graph_has_all_nodes_and_edges(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    path = tmp_path / "graph.pt"
    write_pyg(SAMPLE, path)
    graph = data.Data.from_dict(torch.load(path, weights_only=True))
    assert graph.num_nodes == 7
    assert [graph.targets[place] for place in graph.op.tolist()][2:] == [
        "torch.cat",
        "operator.getitem",
        "torch.add",
        "torch.Tensor.to",
        "output",
    ]
    assert graph.num_elements.tolist() == [12, 3, -1, -1, 12, -1, -1]
