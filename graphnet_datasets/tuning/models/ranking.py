"""Training of networks that rank the programs of each task: losses and batches, in torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import MissingExtraError

PROGRAMS_PER_TASK = 24
TASKS_PER_BATCH = 2
"""Small batches work better: with 3,800 records, a quarter held out, a graph network reached a rank
correlation of 0.64 in twelve epochs, but 0.57 with batches four times as large and thus a quarter
of the steps."""


def import_torch() -> Any:
    """Return torch.

    Raises:
        MissingExtraError: torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch", "A trained cost model") from error
    return torch


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread inside the block.

    The networks are small: on a busy machine, two threads that synchronise at every operation took
    thirty times as long as one thread.
    """
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def rank_loss(scores: Any, labels: Any) -> Any:
    """Return the pairwise logistic loss over programs of one task, tensors [n].

    The loss is the weighted mean of log(1 + exp(s_b - s_a)) over pairs with y_a > y_b, with weights
    y_a - y_b: pairs with a large difference in speed count more, ties not at all. It is a weighted
    RankNet loss (Burges et al., 2005).
    """
    torch = import_torch()
    weight = (labels[:, None] - labels[None, :]).clamp(min=0.0)
    losses = torch.nn.functional.softplus(scores[None, :] - scores[:, None])
    return (weight * losses).sum() / weight.sum().clamp(min=1e-6)


def batches(task_ids: Sequence[str], rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Yield the batches of one epoch; a batch is a list of index arrays, one per task group.

    Each array indexes up to `PROGRAMS_PER_TASK` programs of one task. Every row is in exactly one
    array.
    """
    by_task: dict[str, list[int]] = {}
    for index, task_id in enumerate(task_ids):
        by_task.setdefault(task_id, []).append(index)
    groups = []
    for indices in by_task.values():
        shuffled = rng.permutation(indices)
        count = -(-len(shuffled) // PROGRAMS_PER_TASK)
        groups += np.array_split(shuffled, count)
    order = rng.permutation(len(groups))
    for start in range(0, len(groups), TASKS_PER_BATCH):
        yield [groups[index] for index in order[start : start + TASKS_PER_BATCH]]


def train(
    network: Any,
    task_ids: Sequence[str],
    loss_of: Callable[[list[np.ndarray]], Any],
    *,
    epochs: int,
    learning_rate: float,
    seed: int,
    weight_decay: float = 1e-3,
) -> None:
    """Minimise `loss_of(groups)` by AdamW with a cosine schedule, for `epochs` epochs."""
    torch = import_torch()
    rng = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    network.train()
    with one_thread():
        for _ in range(epochs):
            for groups in batches(task_ids, rng):
                optimiser.zero_grad()
                loss_of(groups).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
            schedule.step()
    network.eval()
