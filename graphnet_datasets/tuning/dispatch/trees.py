"""Decision trees as plain arrays: trained by scikit-learn, walked without it in a microsecond.

A dispatcher decides inside the call that it speeds up, so that a call into a library of arrays
would cost more than what it decides on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import TuningError
from ..interfaces import State

_LEAF = -1


@dataclasses.dataclass(frozen=True, slots=True)
class DecisionTree:
    """A binary tree; node 0 is the root.

    Of each node: the index of the feature that it asks for (-1: a leaf), the threshold, the nodes
    for values at most and above it, what a leaf decides, and whether it is sure.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    decision: tuple[int, ...]
    is_sure: tuple[bool, ...]

    def decide(self, look: Callable[[int], float]) -> tuple[int, bool]:
        """Return the decision for an input whose features `look` gives, and whether it is sure.

        >>> feature, threshold, decision = (2, -1, -1), (0.5, 0.0, 0.0), (0, 7, 9)
        >>> tree = DecisionTree(feature, threshold, (1, 0, 0), (2, 0, 0), decision, (True,) * 3)
        >>> tree.decide([0.0, 0.0, 0.7].__getitem__)
        (9, True)
        """
        node = 0
        while (feature := self.feature[node]) != _LEAF:
            node = self.left[node] if look(feature) <= self.threshold[node] else self.right[node]
        return self.decision[node], self.is_sure[node]

    def state(self) -> State:
        """Return JSON data."""
        return {field.name: list(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_state(cls, state: State, num_decisions: int) -> DecisionTree:
        """Return the tree of a state, in which every walk ends.

        Raises:
            TuningError: it is no tree: lists of different lengths, a node before its parent, a
                decision that does not exist.
        """
        kinds = {"threshold": float, "is_sure": bool}
        columns = {
            field.name: tuple(kinds.get(field.name, int)(each) for each in state[field.name])
            for field in dataclasses.fields(cls)
        }
        count = len(columns["feature"])
        tree = cls(**columns)  # type: ignore[arg-type]
        is_whole = count > 0 and all(len(each) == count for each in columns.values())
        # Children after their parents: a walk cannot go round in a circle.
        if not is_whole or not all(
            (tree.feature[node] == _LEAF or node < min(tree.left[node], tree.right[node]))
            and max(tree.left[node], tree.right[node]) < count
            and tree.feature[node] >= _LEAF
            and 0 <= tree.decision[node] < num_decisions
            for node in range(count)
        ):
            raise TuningError("The state holds no decision tree. Fit the dispatcher again.")
        return tree


def cost_matrix(times: np.ndarray) -> np.ndarray:
    """Return C [k, k]: how much longer j takes than i on an input of label i, in the mean.

    `times` are [n, k]; the label of an input is its fastest.

    >>> cost_matrix(np.array([[1.0, 3.0], [1.0, 2.0], [4.0, 2.0]])).tolist()
    [[0.0, 1.5], [2.0, 0.0]]
    """
    labels = times.argmin(axis=1)
    slowdown = times - times.min(axis=1, keepdims=True)
    costs = np.zeros((times.shape[1],) * 2)
    for label in np.unique(labels):
        costs[label] = slowdown[labels == label].mean(axis=0)
    return costs


def fit_tree(
    inputs: np.ndarray,
    times: np.ndarray,
    features: Sequence[int],
    max_depth: int,
    seed: int,
    *,
    sure: float,
) -> DecisionTree:
    """Return a tree over some of the features that decides by least expected cost.

    Training inputs weigh as much as a wrong choice may cost them. Without features, or where one
    label is best for all, it is a single leaf: the constant with the least sum of times. A leaf is
    sure where the share of inputs for which it decides the best is at least `sure`.
    """
    labels = times.argmin(axis=1)
    if not features or len(np.unique(labels)) == 1:
        best = int(times.sum(axis=0).argmin())
        is_sure = float(np.mean(labels == best)) >= sure
        return DecisionTree((_LEAF,), (0.0,), (0,), (0,), (best,), (is_sure,))
    from sklearn.tree import DecisionTreeClassifier

    costs = cost_matrix(times)
    regret = times.max(axis=1) - times.min(axis=1)
    regret = regret / max(regret.mean(), 1e-300)
    classifier = DecisionTreeClassifier(
        max_depth=max_depth, min_samples_leaf=max(1, len(inputs) // 100), random_state=seed
    ).fit(inputs[:, features], labels, sample_weight=regret + 1e-3)
    nodes = classifier.tree_
    leaf_of = classifier.apply(inputs[:, features])
    decisions, are_sure = [], []
    for node in range(nodes.node_count):
        own = labels[leaf_of == node]
        shares = np.bincount(own, minlength=times.shape[1]) / max(len(own), 1)
        decision = int((shares @ costs).argmin())
        decisions.append(decision)
        are_sure.append(bool(shares[decision] >= sure))
    return DecisionTree(
        feature=tuple(_LEAF if each < 0 else int(features[each]) for each in nodes.feature),
        threshold=tuple(map(float, nodes.threshold)),
        left=tuple(max(int(each), 0) for each in nodes.children_left),
        right=tuple(max(int(each), 0) for each in nodes.children_right),
        decision=tuple(decisions),
        is_sure=tuple(are_sure),
    )
