"""A graph network over the scheduled program, in place of features made by hand.

Tomczak, Lepert and Wiggers, "Simulating Execution Time of Tensor Programs using Graph Neural
Networks", 2019. The program's syntax tree is a graph, its nodes loops, loads, stores and arithmetic
(`ProgramGraph`); layers of graph convolution

    h' = relu(D^-1/2 A D^-1/2 h W)

are followed by pooling over nodes and a small network that gives the time.

Ours: a convolution for each kind of edge, summed with the node's own part; since edges have a
direction, D is what leaves a node on the one side and what arrives at it on the other. A loop and
each access in it, however deep, are tied by an edge with features (stride, extent, bytes touched);
its message is relu(h W + e V), as in GINE (Hu et al., 2020): along the tree alone a load at the
bottom of twelve loops would need twelve layers to know of the outermost. The time is a sum over
statements,

    log t = log sum_s runs_s * exp(c_s),

where c_s, the logarithm of the cost of one run, is what the network gives of the statement's node
and of mean and maximum over the graph. The loss is the square error of log t, less its mean over
the programs of a task in the batch, plus the pairwise loss of `models/ranking.py`; the task's mean
itself counts a little. Several networks are trained from other first weights, and their logarithms
averaged: one alone, trained longer, only fits its own rows better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate, ProgramGraph
from ..interfaces import CostModel, Space
from ..measurement import Measurement
from ..task import Task
from .gnn_network import Scaling, batch_of, import_libraries, make_network
from .ranking import one_thread, rank_loss, train

FAILURE = math.log(2.0)
"""What a failure is worse than the worst of its task, in log time."""


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
        width: int = 48,
        layers: int = 3,
        epochs: int = 12,
        members: int = 3,
        learning_rate: float = 4e-3,
        rank_weight: float = 1.0,
        level_weight: float = 0.05,
        dropout: float = 0.1,
        noise: float = 0.4,
        weight_decay: float = 0.05,
        max_nodes_at_once: int = 50_000,
    ) -> None:
        self.space = space
        self.seed, self.width, self.layers, self.epochs = seed, width, layers, epochs
        self.members = members
        self.learning_rate, self.rank_weight = learning_rate, rank_weight
        self.level_weight = level_weight
        self.dropout, self.noise = dropout, noise
        self.weight_decay = weight_decay
        self.max_nodes_at_once = max_nodes_at_once
        self._torch, _ = import_libraries()
        self._networks: list[Any] = []
        self._scaling: Scaling | None = None
        self._best: dict[str, float] = {}  # of each task: the least logarithm of a time in ms
        self._usual_best = 0.0

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Train anew on all rows whose program has a graph.

        Raises:
            TuningError: none has.
        """
        graphs = self._graphs([row.candidate for row in measurements])
        kept = [index for index, graph in enumerate(graphs) if graph is not None]
        if not kept:
            raise TuningError("No row has a program graph, so that there is nothing to learn from.")
        rows = [measurements[index] for index in kept]
        own = [graph for graph in graphs if graph is not None]
        self._scaling = scaling = Scaling.of(own)
        times = _log_times(rows)
        self._best = {}
        for row, value in zip(rows, times, strict=True):
            self._best[row.task_id] = min(self._best.get(row.task_id, math.inf), float(value))
        self._usual_best = float(np.mean(list(self._best.values())))
        tasks = [row.task_id for row in rows]
        targets = self._torch.as_tensor(times, dtype=self._torch.float32)
        self._networks = [
            self._trained(own, scaling, targets, tasks, self.seed * self.members + member)
            for member in range(self.members)
        ]

    def _trained(
        self,
        graphs: Sequence[ProgramGraph],
        scaling: Scaling,
        targets: Any,
        tasks: Sequence[str],
        seed: int,
    ) -> Any:
        """Return a network that was trained on logarithms of times, `targets` [graphs]."""
        torch = self._torch
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = make_network(
                graphs[0].nodes.shape[1],
                graphs[0].edge_features.shape[1],
                width=self.width,
                layers=self.layers,
                dropout=self.dropout,
                noise=self.noise,
            )
            with torch.no_grad(), one_thread():
                step = max(len(graphs) // 256, 1)
                found = network(batch_of(graphs[::step], scaling))
                network.level += (targets[::step] - found).mean()

            def loss_of(groups: list[np.ndarray]) -> Any:
                joined = np.concatenate(groups)
                given = targets[torch.as_tensor(joined)]
                found = network(batch_of([graphs[index] for index in joined.tolist()], scaling))
                sizes = [len(group) for group in groups]
                parts = zip(found.split(sizes), given.split(sizes), strict=True)
                return torch.stack([self._loss(*part) for part in parts]).mean()

            train(
                network,
                tasks,
                loss_of,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                seed=seed,
                weight_decay=self.weight_decay,
            )
        return network

    def _loss(self, found: Any, given: Any) -> Any:
        """Return the loss of programs of one task: logarithms of times, [n]."""
        errors = found - given
        level = errors.mean()
        squares = self._torch.nn.functional.smooth_l1_loss(found - level, given)
        return (
            squares + self.rank_weight * rank_loss(-found, -given) + self.level_weight * level.abs()
        )

    def predict(self, task: Task, candidates: Sequence[Candidate]) -> tuple[np.ndarray, None]:
        """Return the predicted throughput relative to the best of the task.

        Of a task without rows in `fit` the best is not known: it counts as long as the others' in
        the mean, and only the order of candidates tells.
        """
        graphs = self._graphs(candidates)
        means = np.array([-math.inf if each is None else 0.0 for each in graphs])
        if not self._networks or self._scaling is None:
            return means, None
        best = self._best.get(task.task_id, self._usual_best)
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
                batch = batch_of(chunk, self._scaling)
                times = np.mean([network(batch).numpy() for network in self._networks], axis=0)
                means[kept[start:stop]] = np.exp(best - times.astype(np.float64))
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


def _log_times(rows: Sequence[Measurement]) -> np.ndarray:
    """Return the logarithm of each time in ms; a failure is worse than the worst of its task."""
    worst: dict[str, float] = {}
    for row in rows:
        if row.is_ok:
            value = math.log(row.latency_ms)
            worst[row.task_id] = max(worst.get(row.task_id, -math.inf), value)
    usual = float(np.mean(list(worst.values()))) if worst else 0.0
    return np.array(
        [
            math.log(row.latency_ms) if row.is_ok else worst.get(row.task_id, usual) + FAILURE
            for row in rows
        ]
    )
