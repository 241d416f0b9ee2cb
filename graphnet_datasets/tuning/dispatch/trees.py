"""Decision trees as plain tuples: trained by scikit-learn, evaluated without it.

A dispatcher decides within the call that it accelerates. Evaluation takes a microsecond; a call
into an array library could cost more than the decision saves.
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

    Each node has the index of its feature (-1 for a leaf), a threshold, the child for values up to
    the threshold and the child for larger values, a decision, and whether the decision is sure.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    decision: tuple[int, ...]
    is_sure: tuple[bool, ...]

    def decide(self, look: Callable[[int], float]) -> tuple[int, bool]:
        """Return the decision for an input and whether it is sure; `look` returns a feature.

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
        """Return the tree as JSON data."""
        return {field.name: list(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_state(cls, state: State, num_decisions: int) -> DecisionTree:
        """Return the tree of a state, after checking that every evaluation terminates.

        Raises:
            TuningError: the state is not a tree: lists of different lengths, a child before its
                parent, or a decision out of range.
        """
        kinds = {"threshold": float, "is_sure": bool}
        columns = {
            field.name: tuple(kinds.get(field.name, int)(value) for value in state[field.name])
            for field in dataclasses.fields(cls)
        }
        count = len(columns["feature"])
        tree = cls(**columns)  # type: ignore[arg-type]
        is_whole = count > 0 and all(len(column) == count for column in columns.values())
        # Children must follow their parents, so that evaluation cannot loop.
        if not is_whole or not all(
            (tree.feature[node] == _LEAF or node < min(tree.left[node], tree.right[node]))
            and max(tree.left[node], tree.right[node]) < count
            and tree.feature[node] >= _LEAF
            and 0 <= tree.decision[node] < num_decisions
            for node in range(count)
        ):
            raise TuningError("The state is not a valid decision tree. Fit the dispatcher again.")
        return tree


def cost_matrix(times: np.ndarray) -> np.ndarray:
    """Return C [k, k]: the mean extra time of j over i on inputs with label i.

    `times` are [n, k]; the label of an input is its fastest configuration.

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
    """Return a tree over some features that decides by minimum expected cost.

    Training inputs are weighted by the possible cost of a wrong choice. Without features, or if one
    label is best for all inputs, the tree is a single leaf with the smallest sum of times. A leaf
    is sure if its decision is best for at least the share `sure` of its inputs.
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
        feature=tuple(_LEAF if column < 0 else int(features[column]) for column in nodes.feature),
        threshold=tuple(map(float, nodes.threshold)),
        left=tuple(max(int(child), 0) for child in nodes.children_left),
        right=tuple(max(int(child), 0) for child in nodes.children_right),
        decision=tuple(decisions),
        is_sure=tuple(are_sure),
    )
