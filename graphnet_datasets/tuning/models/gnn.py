"""A graph network over the scheduled program, which replaces hand-made features.

Tomczak, Lepert and Wiggers, "Simulating Execution Time of Tensor Programs using Graph Neural
Networks", 2019. The syntax tree of a program is a graph of loops, loads, stores and arithmetic
(`ProgramGraph`). Layers of graph convolution

    h' = relu(D^-1/2 A D^-1/2 h W)

are followed by pooling over nodes and a small network that predicts the time.

Differences from the paper: there is one convolution per kind of edge, added to a node's own term.
Since edges are directed, D contains out-degrees on one side and in-degrees on the other. A loop is
connected to each access nested in it by an edge with features (stride, extent, bytes touched),
whose message is relu(h W + e V), as in GINE (Hu et al., 2020). With tree edges alone, a load inside
twelve loops would need twelve layers to depend on the outermost loop. The time is a sum over
statements,

    log t = log sum_s runs_s * exp(c_s),

where the network predicts c_s, the log cost of one execution, from the statement's node and the
mean and maximum over the graph. The loss is the squared error of log t after subtracting its mean
over the task's programs in the batch, plus the pairwise loss of `models/ranking.py`, plus a small
weight on the task's mean. With `uses_machine_code`, features of the compiled program, which the
syntax tree cannot show, join those of each statement. Several networks are trained from different
initial weights, and their log times are averaged; a single network that is trained longer overfits
instead.
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
from .pooling import log_machine_code
from .ranking import one_thread, rank_loss, train

FAILURE = math.log(2.0)
"""Added to the worst log time of the task to obtain the log time of a failure."""


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
        uses_machine_code: bool = False,
    ) -> None:
        self.space = space
        self.seed, self.width, self.layers, self.epochs = seed, width, layers, epochs
        self.members = members
        self.learning_rate, self.rank_weight = learning_rate, rank_weight
        self.level_weight = level_weight
        self.dropout, self.noise = dropout, noise
        self.weight_decay = weight_decay
        self.max_nodes_at_once = max_nodes_at_once
        self.uses_machine_code = uses_machine_code
        self._torch, _ = import_libraries()
        self._networks: list[Any] = []
        self._scaling: Scaling | None = None
        self._best: dict[str, float] = {}  # per task: minimum log time in log ms
        self._usual_best = 0.0

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit from scratch on all rows whose program has a graph.

        Raises:
            TuningError: no row has a program graph.
        """
        graphs, codes = self._inputs([row.candidate for row in measurements])
        valid = [index for index, graph in enumerate(graphs) if graph is not None]
        if not valid:
            raise TuningError(
                "None of the rows has a program graph. Use a space that implements `graph`."
            )
        rows = [measurements[index] for index in valid]
        own = [graph for graph in graphs if graph is not None]
        own_codes = codes[valid]
        self._scaling = scaling = Scaling.of(own, own_codes)
        times = _log_times(rows)
        self._best = {}
        for row, value in zip(rows, times, strict=True):
            self._best[row.task_id] = min(self._best.get(row.task_id, math.inf), float(value))
        self._usual_best = float(np.mean(list(self._best.values())))
        tasks = [row.task_id for row in rows]
        targets = self._torch.as_tensor(times, dtype=self._torch.float32)
        self._networks = [
            self._trained(
                own, own_codes, scaling, targets, tasks, self.seed * self.members + member
            )
            for member in range(self.members)
        ]

    def _trained(
        self,
        graphs: Sequence[ProgramGraph],
        codes: np.ndarray,
        scaling: Scaling,
        targets: Any,
        tasks: Sequence[str],
        seed: int,
    ) -> Any:
        """Return a network trained on log times, `targets` [graphs]."""
        torch = self._torch
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = make_network(
                graphs[0].nodes.shape[1],
                graphs[0].edge_features.shape[1],
                codes.shape[1],
                width=self.width,
                layers=self.layers,
                dropout=self.dropout,
                noise=self.noise,
            )
            with torch.no_grad(), one_thread():
                step = max(len(graphs) // 256, 1)
                predicted = network(batch_of(graphs[::step], codes[::step], scaling))
                network.level += (targets[::step] - predicted).mean()

            def loss_of(groups: list[np.ndarray]) -> Any:
                joined = np.concatenate(groups)
                expected = targets[torch.as_tensor(joined)]
                chosen = [graphs[index] for index in joined.tolist()]
                predicted = network(batch_of(chosen, codes[joined], scaling))
                sizes = [len(group) for group in groups]
                parts = zip(predicted.split(sizes), expected.split(sizes), strict=True)
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

    def _loss(self, predicted: Any, expected: Any) -> Any:
        """Return the loss over programs of one task; both arguments are log times, [n]."""
        errors = predicted - expected
        level = errors.mean()
        squares = self._torch.nn.functional.smooth_l1_loss(predicted - level, expected)
        return (
            squares
            + self.rank_weight * rank_loss(-predicted, -expected)
            + self.level_weight * level.abs()
        )

    def predict(self, task: Task, candidates: Sequence[Candidate]) -> tuple[np.ndarray, None]:
        """Return the predicted throughput relative to the best of the task.

        For a task without rows in `fit`, the mean best of the other tasks is used, so that only the
        order of the predictions is meaningful.
        """
        graphs, codes = self._inputs(candidates)
        means = np.array([-math.inf if graph is None else 0.0 for graph in graphs])
        if not self._networks or self._scaling is None:
            return means, None
        best = self._best.get(task.task_id, self._usual_best)
        valid = np.flatnonzero(np.isfinite(means))
        start = 0
        with self._torch.no_grad(), one_thread():
            while start < len(valid):
                stop, count = start, 0
                chunk: list[ProgramGraph] = []
                while stop < len(valid) and (not chunk or count < self.max_nodes_at_once):
                    graph = graphs[valid[stop]]
                    if graph is not None:
                        chunk.append(graph)
                        count += len(graph.nodes)
                    stop += 1
                batch = batch_of(chunk, codes[valid[start:stop]], self._scaling)
                times = np.mean([network(batch).numpy() for network in self._networks], axis=0)
                means[valid[start:stop]] = np.exp(best - times.astype(np.float64))
                start = stop
        return means, None

    def _inputs(
        self, candidates: Sequence[Candidate]
    ) -> tuple[list[ProgramGraph | None], np.ndarray]:
        """Return the graph of each candidate, and its machine code as float32 [candidates, c].

        Candidates without a graph, or without machine code if it is used, have None as a graph.
        """
        graphs: list[ProgramGraph | None] = []
        for candidate in candidates:
            try:
                graphs.append(self.space.graph(candidate))
            except TuningError:
                graphs.append(None)
        if not self.uses_machine_code:
            return graphs, np.zeros((len(candidates), 0), np.float32)
        vectors = self.space.machine_code_of(candidates)
        size = max((len(vector) for vector in vectors if vector is not None), default=0)
        codes = np.zeros((len(candidates), size), np.float32)
        for index, vector in enumerate(vectors):
            if vector is None:
                graphs[index] = None
            else:
                codes[index] = log_machine_code(vector)
        return graphs, codes


def _log_times(rows: Sequence[Measurement]) -> np.ndarray:
    """Return the log time of each row in log ms; failures exceed the worst of their task."""
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
