"""A graph network that predicts the target of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MissingExtraError
from .tasks import Indices, LearningTask

EPOCHS = 60
WIDTH = 64
BATCH_SIZE = 16
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2


def fit_and_predict(
    task: LearningTask, train: Indices, test: Indices, *, seed: int = 0, epochs: int = EPOCHS
) -> npt.NDArray[np.float64]:
    """Return the predictions for the test rows of a network that was fitted to the training rows.

    Raises:
        ScoreError: The rows of the task are not graphs.
        MissingExtraError: torch or PyTorch Geometric is not installed.
    """
    torch, geometric = _import_frameworks()
    from ..tuning.models.ranking import one_thread

    is_outcome = task.kind == "classification"
    centre, scale = _standardise(task.targets[train])
    targets = task.targets if is_outcome else (task.targets - centre) / scale
    centres, scales = _standardise(task.features[train])
    features = (task.features - centres) / scales
    graphs = task.graphs
    vocabulary = sorted({name for index in train for name in graphs[index].names})
    index_of = {name: place for place, name in enumerate(vocabulary, 1)}  # 0: unknown operators
    data = [
        geometric.data.Data(
            x=torch.tensor([index_of.get(name, 0) for name in graph.names]),
            sizes=torch.from_numpy(graph.sizes),
            edge_index=torch.from_numpy(graph.edges),
            features=torch.tensor(features[number : number + 1], dtype=torch.float32),
            y=torch.tensor([targets[number]], dtype=torch.float32),
        )
        for number, graph in enumerate(graphs)
    ]
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits if is_outcome else _absolute_loss
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _make_network(len(vocabulary) + 1, features.shape[1])
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
        loader = geometric.loader.DataLoader(
            [data[index] for index in train], batch_size=BATCH_SIZE, shuffle=True
        )
        network.train()
        for _ in range(epochs):
            for batch in loader:
                optimiser.zero_grad()
                loss_of(network(batch), batch.y).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
            schedule.step()
        network.eval()
        with torch.no_grad():
            batches = geometric.loader.DataLoader(
                [data[index] for index in test], batch_size=BATCH_SIZE
            )
            outputs = torch.cat([network(batch) for batch in batches])
        outputs = (outputs.sigmoid() if is_outcome else outputs).double().numpy()
    return outputs if is_outcome else outputs * scale + centre


def _make_network(num_operators: int, num_features: int) -> Any:
    torch, geometric = _import_frameworks()

    class GraphNetwork(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(num_operators, WIDTH)
            self.size = torch.nn.Linear(2, WIDTH)
            self.forward_layers, self.backward_layers = (
                torch.nn.ModuleList(geometric.nn.SAGEConv(WIDTH, WIDTH) for _ in range(3))
                for _ in range(2)
            )
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(3))
            self.head = torch.nn.Sequential(
                torch.nn.Linear(2 * WIDTH + num_features, WIDTH),
                torch.nn.ReLU(),
                torch.nn.Dropout(0.2),
                torch.nn.Linear(WIDTH, 1),
            )

        def forward(self, batch: Any) -> Any:
            nodes = self.embedding(batch.x) + self.size(batch.sizes / 16)
            reverse = batch.edge_index.flip(0)
            layers = zip(self.forward_layers, self.backward_layers, self.norms, strict=True)
            for forward, backward, norm in layers:
                messages = forward(nodes, batch.edge_index) + backward(nodes, reverse)
                nodes = nodes + norm(messages).relu()
            pooled = [
                geometric.nn.global_add_pool(nodes, batch.batch) / 64,
                geometric.nn.global_max_pool(nodes, batch.batch),
                batch.features,
            ]
            return self.head(torch.cat(pooled, dim=1)).squeeze(1)

    return GraphNetwork()


def _absolute_loss(predictions: Any, targets: Any) -> Any:
    return (predictions - targets).abs().mean()


def _standardise(values: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Return the mean and the standard deviation over rows, 1 where all rows are equal."""
    deviation = values.std(axis=0)
    return values.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _import_frameworks() -> tuple[Any, Any]:
    try:
        import torch
        import torch_geometric
        import torch_geometric.loader
    except ImportError as error:
        raise MissingExtraError(
            "torch-geometric", "learning", "The baseline `graph_network`"
        ) from error
    return torch, torch_geometric
