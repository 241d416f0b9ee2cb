"""A graph network over the scheduled program, in place of features made by hand.

Tomczak, Lepert and Wiggers, "Simulating Execution Time of Tensor Programs using Graph Neural
Networks", 2019. The program's syntax tree is a graph, its nodes loops, blocks, loads, stores and
arithmetic (`ProgramGraph`); layers of graph convolution

    h' = relu(D^-1/2 A D^-1/2 h W)

are followed by pooling over nodes and a small network that gives the time.

Ours: a convolution for each kind of edge (down, up, to the next sibling, from who writes to who
reads), summed with the node's own part; since edges have a direction, D is what leaves a node on
the one side and what arrives at it on the other; sum and maximum as pooling; the target is the log
of the throughput relative to the best of the task, its square error plus the pairwise loss of
`models/ranking.py`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import MissingExtraError, TuningError
from ..candidate import Candidate, ProgramGraph
from ..interfaces import CostModel, Space
from ..measurement import Measurement, normalised_throughput
from ..task import Task
from .ranking import one_thread, rank_loss, train

EDGE_KINDS = 4
LEAST_THROUGHPUT = 0.01
"""What a failure counts as, since its log is wanted."""


class GnnModel(CostModel):
    """Graph convolutions over `Space.graph`.

    Raises:
        MissingExtraError: torch_geometric is not installed.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        width: int = 64,
        layers: int = 3,
        epochs: int = 40,
        learning_rate: float = 2e-3,
        rank_weight: float = 1.0,
        max_nodes_at_once: int = 50_000,
    ) -> None:
        self.space = space
        self.seed, self.width, self.layers, self.epochs = seed, width, layers, epochs
        self.learning_rate, self.rank_weight = learning_rate, rank_weight
        self.max_nodes_at_once = max_nodes_at_once
        self._torch, self._geometric = _import_libraries()
        self._network: Any = None
        self._centre = self._scale = np.zeros(0, np.float32)

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Train anew on all rows whose program has a graph.

        Raises:
            TuningError: none has.
        """
        torch = self._torch
        graphs = self._graphs([row.candidate for row in measurements])
        kept = [index for index, graph in enumerate(graphs) if graph is not None]
        if not kept:
            raise TuningError("No row has a program graph, so that there is nothing to learn from.")
        rows = [measurements[index] for index in kept]
        own = [graph for graph in graphs if graph is not None]
        nodes = np.concatenate([graph.nodes for graph in own])
        self._centre = nodes.mean(axis=0)
        self._scale = np.maximum(nodes.std(axis=0), 1e-3)
        throughput = normalised_throughput(rows)
        labels = torch.as_tensor(throughput, dtype=torch.float32)
        targets = labels.clamp(min=LEAST_THROUGHPUT).log()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._network = _make_network(
                torch, self._geometric, nodes.shape[1], self.width, self.layers
            )

            def loss_of(groups: list[np.ndarray]) -> Any:
                joined = np.concatenate(groups)
                scores = self._network(*self._batch([own[index] for index in joined]))
                squares = (scores - targets[torch.as_tensor(joined)]).square().mean()
                parts = scores.split([len(group) for group in groups])
                ranks = [
                    rank_loss(part, labels[torch.as_tensor(group)])
                    for part, group in zip(parts, groups, strict=True)
                ]
                return squares + self.rank_weight * torch.stack(ranks).mean()

            train(
                self._network,
                [row.task_id for row in rows],
                loss_of,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                seed=self.seed,
            )

    def predict(
        self,
        task: Task,  # noqa: ARG002 - the graph holds its loops' extents
        candidates: Sequence[Candidate],
    ) -> tuple[np.ndarray, None]:
        """Return the predicted throughput relative to the best of the task."""
        graphs = self._graphs(candidates)
        means = np.array([-math.inf if each is None else 0.0 for each in graphs])
        if self._network is None:
            return means, None
        kept = np.flatnonzero(np.isfinite(means))
        start = 0
        with self._torch.no_grad(), one_thread():
            while start < len(kept):
                stop, count = start, 0
                chunk: list[ProgramGraph] = []
                while stop < len(kept) and (not chunk or count < self.max_nodes_at_once):
                    graph = graphs[kept[stop]]
                    if graph is not None:
                        chunk.append(graph)
                        count += len(graph.nodes)
                    stop += 1
                scores = self._network(*self._batch(chunk)).numpy()
                means[kept[start:stop]] = np.exp(scores)
                start = stop
        return means, None

    def _graphs(self, candidates: Sequence[Candidate]) -> list[ProgramGraph | None]:
        found: list[ProgramGraph | None] = []
        for each in candidates:
            try:
                found.append(self.space.graph(each))
            except TuningError:
                found.append(None)
        return found

    def _batch(self, graphs: Sequence[ProgramGraph]) -> tuple[Any, Any, Any, int]:
        """Return nodes, the normalised adjacency, the graph of each node, and how many graphs."""
        torch = self._torch
        counts = np.array([len(graph.nodes) for graph in graphs])
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        nodes = np.concatenate([graph.nodes for graph in graphs])
        edges = np.concatenate(
            [graph.edges + offset for graph, offset in zip(graphs, offsets, strict=True)], axis=1
        )
        kinds = np.concatenate([graph.edge_kinds for graph in graphs])
        return (
            torch.as_tensor((nodes - self._centre) / self._scale).float(),
            _adjacency(torch, edges, kinds, len(nodes)),
            torch.as_tensor(np.repeat(np.arange(len(graphs)), counts)),
            len(graphs),
        )


def _adjacency(torch: Any, edges: np.ndarray, kinds: np.ndarray, count: int) -> Any:
    """Return D^-1/2 A D^-1/2 of every kind of edge, sparse [count * kinds, count].

    Row `EDGE_KINDS * i + k` has the edges of kind k that lead to node i. Edges have a direction:
    the degrees are those that leave where an edge begins and that arrive where it ends.
    """
    begins, ends = EDGE_KINDS * edges[0] + kinds, EDGE_KINDS * edges[1] + kinds
    leaving = np.bincount(begins, minlength=EDGE_KINDS * count)
    arriving = np.bincount(ends, minlength=EDGE_KINDS * count)
    weights = 1.0 / np.sqrt(leaving[begins] * arriving[ends])
    order = np.argsort(ends, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that its sparse rows are in beta
        return torch.sparse_csr_tensor(
            torch.as_tensor(np.append(0, np.cumsum(arriving))),
            torch.as_tensor(edges[0][order]),
            torch.as_tensor(weights[order], dtype=torch.float32),
            (EDGE_KINDS * count, count),
        )


def _make_network(torch: Any, geometric: Any, size: int, width: int, layers: int) -> Any:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(size, width)
            # the own part beside a convolution for each kind of edge, as one product
            self.mixing = torch.nn.ModuleList(
                torch.nn.Linear((1 + EDGE_KINDS) * width, width) for _ in range(layers)
            )
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(layers))
            self.last = torch.nn.Sequential(
                torch.nn.Linear(2 * width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
            )

        def forward(self, nodes: Any, adjacency: Any, owner: Any, count: int) -> Any:
            h = torch.relu(self.first(nodes))
            for mix, norm in zip(self.mixing, self.norms, strict=True):
                arrived = (adjacency @ h).view(len(h), EDGE_KINDS * width)
                h = h + torch.relu(norm(mix(torch.cat([h, arrived], dim=1))))
            pooled = [
                geometric.global_add_pool(h, owner, count) / 16,
                geometric.global_max_pool(h, owner, count),
            ]
            return self.last(torch.cat(pooled, dim=1))[:, 0]

    return Network()


def _import_libraries() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            # it uses torch.jit.script, of which torch 2.13 warns
            warnings.simplefilter("ignore", DeprecationWarning)
            import torch
            import torch_geometric.nn
    except ImportError as error:
        raise MissingExtraError(
            "torch_geometric", "tuning-gnn", "A model of graph networks"
        ) from error
    return torch, torch_geometric.nn
