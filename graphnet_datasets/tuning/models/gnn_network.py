"""The network of `models/gnn.py` and the conversion of program graphs to tensors, in torch."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import MissingExtraError
from ..candidate import EdgeKind, ProgramGraph

PLAIN_KINDS = (EdgeKind.DOWN, EdgeKind.UP, EdgeKind.NEXT, EdgeKind.DATA, EdgeKind.PART)
"""Kinds of edges without features."""
LOOP_KINDS = (EdgeKind.AROUND, EdgeKind.INSIDE)
"""Kinds of edges with features."""
LIMIT = 3.0
"""Features are clipped to this number of standard deviations from the mean, because the network
cannot extrapolate beyond its training programs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """A batch of g graphs with n nodes and s statements in total.

    `nodes` is [n, f]. `plain` is the normalised adjacency of all plain kinds, sparse [5 n, n].
    `ties` has for each of `LOOP_KINDS` the sources of its edges [e], their features [e, k] and a
    sparse matrix that sums edges at their targets [n, e]. `owner` is the graph of each node.
    `code` [g, c] are scaled features of machine code; c is 0 without them.
    `statements` [s] are node indices, `statement_owner` their graphs and `log_runs` the logs of
    their execution counts.
    """

    nodes: Any
    plain: Any
    ties: tuple[tuple[Any, Any, Any], ...]
    owner: Any
    statements: Any
    statement_owner: Any
    log_runs: Any
    code: Any
    num_graphs: int


@dataclasses.dataclass(frozen=True, slots=True)
class Scaling:
    """Means and standard deviations of node features, edge features and machine code."""

    node_centre: np.ndarray
    node_scale: np.ndarray
    edge_centre: np.ndarray
    edge_scale: np.ndarray
    code_centre: np.ndarray
    code_scale: np.ndarray

    @classmethod
    def of(cls, graphs: Sequence[ProgramGraph], codes: np.ndarray) -> Scaling:
        """Return the scaling computed from some graphs and their machine code, [graphs, c]."""
        nodes = np.concatenate([graph.nodes for graph in graphs])
        ties = np.concatenate(
            [graph.edge_features[np.isin(graph.edge_kinds, LOOP_KINDS)] for graph in graphs]
        )
        if not len(ties):
            ties = np.zeros((1, ties.shape[1]), np.float32)
        return cls(
            nodes.mean(axis=0),
            np.maximum(nodes.std(axis=0), 0.03),
            ties.mean(axis=0),
            np.maximum(ties.std(axis=0), 0.03),
            codes.mean(axis=0),
            np.maximum(codes.std(axis=0), 0.03),
        )


def batch_of(graphs: Sequence[ProgramGraph], codes: np.ndarray, scaling: Scaling) -> Batch:
    """Return the tensors of some graphs with machine code, [graphs, c].

    In a graph without statements, all nodes count as statements.
    """
    torch, _ = import_libraries()
    counts = np.array([len(graph.nodes) for graph in graphs])
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
    total = int(counts.sum())
    nodes = np.concatenate([graph.nodes for graph in graphs])
    edges = np.concatenate(
        [graph.edges + offset for graph, offset in zip(graphs, offsets, strict=True)], axis=1
    )
    kinds = np.concatenate([graph.edge_kinds for graph in graphs])
    features = np.concatenate([graph.edge_features for graph in graphs])
    owner = np.repeat(np.arange(len(graphs)), counts)
    runs = np.concatenate([_runs_of(graph) for graph in graphs])
    statements = np.flatnonzero(np.isfinite(runs))
    ties = []
    for kind in LOOP_KINDS:
        own = np.flatnonzero(kinds == kind)
        own = own[np.argsort(edges[1, own], kind="stable")]
        scaled = ((features[own] - scaling.edge_centre) / scaling.edge_scale).clip(-LIMIT, LIMIT)
        begins = torch.as_tensor(edges[0, own])
        sums = _sparse(torch, edges[1, own], np.arange(len(own)), None, (total, len(own)))
        ties.append((begins, torch.as_tensor(scaled, dtype=torch.float32), sums))
    return Batch(
        torch.as_tensor((nodes - scaling.node_centre) / scaling.node_scale, dtype=torch.float32),
        _adjacency(torch, edges, kinds, total),
        tuple(ties),
        torch.as_tensor(owner),
        torch.as_tensor(statements),
        torch.as_tensor(owner[statements]),
        torch.as_tensor(runs[statements], dtype=torch.float32),
        torch.as_tensor((codes - scaling.code_centre) / scaling.code_scale, dtype=torch.float32),
        len(graphs),
    )


def _runs_of(graph: ProgramGraph) -> np.ndarray:
    return graph.log_runs if np.isfinite(graph.log_runs).any() else np.zeros(len(graph.nodes))


def _adjacency(torch: Any, edges: np.ndarray, kinds: np.ndarray, count: int) -> Any:
    """Return D^-1/2 A D^-1/2 for every plain kind of edge, sparse [kinds * count, count].

    Row `kinds * i + k` contains the edges of kind k to node i. Edges are directed: D contains the
    out-degrees of sources and the in-degrees of targets.
    """
    number = len(PLAIN_KINDS)
    own = np.flatnonzero(kinds < number)
    begins = number * edges[0, own] + kinds[own]
    ends = number * edges[1, own] + kinds[own]
    leaving = np.bincount(begins, minlength=number * count)
    arriving = np.bincount(ends, minlength=number * count)
    weights = 1.0 / np.sqrt(leaving[begins] * arriving[ends])
    order = np.argsort(ends, kind="stable")
    return _sparse(
        torch, ends[order], edges[0, own[order]], weights[order], (number * count, count)
    )


def _sparse(
    torch: Any,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray | None,
    size: tuple[int, int],
) -> Any:
    """Return a sparse matrix from entries sorted by row; `values` defaults to ones."""
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=size[0])))
    if values is None:
        values = np.ones(len(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that sparse CSR tensors are in beta
        return torch.sparse_csr_tensor(
            torch.as_tensor(starts),
            torch.as_tensor(columns),
            torch.as_tensor(values, dtype=torch.float32),
            size,
        )


def make_network(
    node_size: int,
    edge_size: int,
    code_size: int = 0,
    *,
    width: int,
    layers: int,
    dropout: float,
    noise: float,
) -> Any:
    """Return the network, which maps a `Batch` to the log time of each graph, [g].

    `noise` is the standard deviation of noise added to node features during training. Machine code,
    `code_size` features, passes through a layer and is joined to the features of each statement.
    """
    torch, geometric = import_libraries()

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            number = 1 + len(PLAIN_KINDS) + len(LOOP_KINDS)
            self.from_node = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in LOOP_KINDS)
            self.from_edge = torch.nn.ModuleList(
                torch.nn.Linear(edge_size, width, bias=False) for _ in LOOP_KINDS
            )
            self.mix = torch.nn.Linear(number * width, width)
            self.drop = torch.nn.Dropout(dropout)
            self.norm = torch.nn.LayerNorm(width)

        def forward(self, h: Any, batch: Batch) -> Any:
            parts = [h, (batch.plain @ h).view(len(h), len(PLAIN_KINDS) * width)]
            for (begins, features, sums), node, edge in zip(
                batch.ties, self.from_node, self.from_edge, strict=True
            ):
                message = torch.relu(node(h).index_select(0, begins) + edge(features))
                parts.append((sums @ message) / 4)
            return h + self.drop(torch.relu(self.norm(self.mix(torch.cat(parts, dim=1)))))

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(node_size, width)
            self.layers = torch.nn.ModuleList(Layer() for _ in range(layers))
            number = 3
            if code_size:
                number = 4
                self.code = torch.nn.Sequential(
                    *(torch.nn.Linear(code_size, 2 * width), torch.nn.ReLU()),
                    *(torch.nn.Dropout(dropout), torch.nn.Linear(2 * width, width)),
                    torch.nn.ReLU(),
                )
            self.cost = torch.nn.Sequential(
                *(torch.nn.Linear(number * width, 2 * width), torch.nn.ReLU()),
                *(torch.nn.Dropout(dropout), torch.nn.Linear(2 * width, 1)),
            )
            self.level = torch.nn.Parameter(torch.zeros(()))

        def forward(self, batch: Batch) -> Any:
            nodes = batch.nodes.clamp(-LIMIT, LIMIT)
            if self.training and noise:
                nodes = nodes + noise * torch.randn_like(nodes)
            h = torch.relu(self.first(nodes))
            for layer in self.layers:
                h = layer(h, batch)
            own = h.index_select(0, batch.statements)
            pooled = [
                geometric.global_mean_pool(h, batch.owner, batch.num_graphs),
                geometric.global_max_pool(h, batch.owner, batch.num_graphs),
            ]
            if code_size:
                pooled.append(self.code(batch.code.clamp(-LIMIT, LIMIT)))
            around = torch.cat(pooled, dim=1).index_select(0, batch.statement_owner)
            own = torch.cat([own, around], dim=1)
            costs = self.cost(own)[:, 0]
            times = costs + batch.log_runs
            highest = geometric.global_max_pool(
                times[:, None].detach(), batch.statement_owner, batch.num_graphs
            )[:, 0]
            relative = torch.exp(times - highest.index_select(0, batch.statement_owner))
            sums = torch.zeros_like(highest).index_add(0, batch.statement_owner, relative)
            return sums.log() + highest + self.level

    return Network()


def import_libraries() -> tuple[Any, Any]:
    """Return torch and `torch_geometric.nn`.

    Raises:
        MissingExtraError: torch_geometric is not installed.
    """
    try:
        with warnings.catch_warnings():
            # it uses torch.jit.script, which torch 2.13 deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            import torch
            import torch_geometric.nn
    except ImportError as error:
        raise MissingExtraError(
            "torch_geometric", "tuning-gnn", "A model of graph networks"
        ) from error
    return torch, torch_geometric.nn
