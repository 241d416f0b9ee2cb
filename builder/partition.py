"""Groups and splits of the first version of a dataset, chosen together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from graphnet_datasets.analysis.splits import SPLITS, split_of

from .groups import model_labels, similar_links

Integers = npt.NDArray[np.int64]

SHARE = 0.1
"""The share of a task's graphs in each of the splits validation and test."""

MIN_GROUPS = 32
"""Groups of a task in validation and in test, or nearly half of its groups if that is less. Groups
of truncated graphs count here, so the number exceeds that of the goals."""

MAX_SHARE = 0.05
"""The largest share of one group in a held-out split."""

_STEPS_PER_GROUP = 60
_LEAK, _FEW_GROUPS, _SIZE = 2.0, 3.0, 0.2
"""Costs of a held-out graph with a link to an earlier split, of a missing group, of a graph too
many or too few."""


def choose_groups(graphs: pa.Table, seed: int = 0) -> list[str]:
    """Return a group for each graph, such that hardly any link joins two splits.

    `graphs` has the columns of `groups.COLUMNS`, and `task`. Graphs of one model or of one family
    (`groups.model_labels`) form a group. Other links chain together half of a large dataset, so
    simulated annealing (S. Kirkpatrick et al., 1983) assigns groups to splits such that few links
    cross, each task has `MIN_GROUPS` groups in each held-out split, and no group is more than
    `MAX_SHARE` of such a split. The name of a group is its smallest family, with a suffix
    that makes `split_of` return the chosen split.
    """
    group_of = _connected(model_labels(graphs))
    splits = _Annealing(group_of, similar_links(graphs), graphs["task"].to_pylist()).run(seed)
    names: dict[int, str] = {}
    families: list[str] = graphs["family"].to_pylist()
    for group, family in zip(group_of.tolist(), families, strict=True):
        names[group] = min(names.get(group, family), family)
    named = {group: _name_in(SPLITS[splits[group]], name) for group, name in names.items()}
    return [named[group] for group in group_of.tolist()]


def _connected(labels: Integers) -> Integers:
    """Return the number of the group of each graph; equal numbers in a row of `labels` link."""
    count = labels.shape[1]
    graphs = np.tile(np.arange(count), len(labels))
    nodes = np.arange(1, len(labels) + 1)[:, None] * count + labels  # each label is a node too
    shape = (count * (len(labels) + 1),) * 2
    adjacency = coo_array((np.ones(labels.size), (graphs, nodes.ravel())), shape=shape)
    groups = connected_components(adjacency, directed=False)[1][:count]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _name_in(split: str, name: str) -> str:
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(name for name in names if split_of(name) == split)


class _Annealing:
    """Search for the splits of groups; split 0 is train, and later splits are held out.

    A graph leaks if it is linked to a graph of an earlier split.
    """

    def __init__(self, group_of: Integers, links: Sequence[Integers], tasks: Sequence[str]) -> None:
        self.group_of = group_of
        ends = np.cumsum(np.bincount(group_of))
        self.members = np.split(np.argsort(group_of, kind="stable"), ends[:-1])
        self.links = [near[group_of[near] != group_of[row]] for row, near in enumerate(links)]
        self.neighbours = [
            np.unique(np.concatenate([group_of[self.links[row]] for row in rows]))
            for rows in self.members
        ]
        names, task_of = np.unique(tasks, return_inverse=True)
        self.sizes = np.zeros((len(self.members), len(names)), np.int64)
        np.add.at(self.sizes, (group_of, task_of), 1)
        self.main_task = self.sizes.argmax(axis=1)
        num_groups = np.bincount(self.main_task, minlength=len(names))
        self.least_groups = np.minimum(MIN_GROUPS, 9 * num_groups // 20)
        self.goal = SHARE * self.sizes.sum(axis=0)
        is_small = self.sizes.sum(axis=1) <= max(1, MAX_SHARE * self.goal.sum())
        self.movable = np.flatnonzero(is_small)
        self.split = np.zeros(len(self.members), np.int64)
        # For each graph and split, the number of linked graphs in that split.
        self.linked = np.zeros((len(group_of), len(SPLITS)), np.int64)
        self.linked[:, 0] = [len(near) for near in self.links]

    def run(self, seed: int) -> Integers:
        """Return the split of each group."""
        random = np.random.default_rng(seed)
        steps = _STEPS_PER_GROUP * len(self.movable)
        cost = self._cost()
        for step in range(steps):
            temperature = 20 * (1 - step / steps) ** 2 + 0.05
            groups = self._draw(random)
            before = self.split[groups]
            self._move(groups, np.full(len(groups), random.integers(len(SPLITS))))
            changed = self._cost()
            if changed > cost and random.random() >= np.exp((cost - changed) / temperature):
                self._move(groups, before)
            else:
                cost = changed
        return self.split

    def _draw(self, random: np.random.Generator) -> Integers:
        """Return a group, every other time with groups that are linked to it."""
        group = random.choice(self.movable)
        near = np.intersect1d(self.neighbours[group], self.movable)
        if random.random() < 0.5 or len(near) == 0:
            return np.array([group])
        return np.union1d(group, random.permutation(near)[:12])

    def _move(self, groups: Integers, splits: Integers) -> None:
        for group, split in zip(groups.tolist(), splits.tolist(), strict=True):
            if split != self.split[group]:
                near = np.concatenate([self.links[row] for row in self.members[group]])
                np.add.at(self.linked, (near, split), 1)
                np.subtract.at(self.linked, (near, self.split[group]), 1)
                self.split[group] = split

    def _cost(self) -> float:
        split = self.split[self.group_of]
        earlier = np.cumsum(self.linked, axis=1) - self.linked
        leaks = np.count_nonzero(earlier[np.arange(len(split)), split])
        cost = _LEAK * leaks
        for held_out in range(1, len(SPLITS)):
            is_in = self.split == held_out
            groups = np.bincount(self.main_task[is_in], minlength=len(self.goal))
            cost += _FEW_GROUPS * np.maximum(self.least_groups - groups, 0).sum()
            cost += _SIZE * np.abs(self.sizes[is_in].sum(axis=0) - self.goal).sum()
        return float(cost)
