"""Boosted trees on machine code, which rank compiled schedules without running them.

The features of a program are those of its machine code (`tuning.machine_code`), on a logarithmic
scale, and the store features of its schedule, summed and maximised over statements. The target is
the logarithm of the time minus its mean over the records of the task, so that the trees learn the
order of the schedules of a task, not the sizes of tasks.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..interfaces import CostModel, Space
from ..measurement import Measurement
from ..task import Task
from .arrays import load_arrays, save_arrays
from .gbdt import import_xgboost
from .pooling import features_of_rows, log_machine_code, pool_features

KIND = "code trees"

_ROWS_AT_ONCE = 1024
_ARRAYS = ("roots", "left", "right", "feature", "value")


@dataclasses.dataclass(frozen=True, slots=True)
class Trees:
    """Binary trees as arrays over all nodes, so that a file of trees contains nothing to execute.

    `roots` are the first nodes of the trees. A node with `left` >= 0 is an inner node: its left
    child follows if input `feature` is below `value`, otherwise its right child. Other nodes are
    leaves with the prediction `value`. Children have larger indices than their parent.
    """

    roots: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    num_features: int

    def __post_init__(self) -> None:
        arrays = [getattr(self, name) for name in _ARRAYS]
        indices = [self.roots, self.left, self.right, self.feature]
        if any(array.ndim != 1 for array in arrays) or any(
            array.dtype.kind != "i" for array in indices
        ):
            raise ValueError("The arrays are not vectors, or their indices are not integers.")
        nodes = np.arange(len(self.value))
        is_inner = self.left >= 0
        children = np.stack([self.left, self.right])
        is_valid = (
            len(nodes) > 0
            and all(len(array) == len(nodes) for array in (self.left, self.right, self.feature))
            and ((children > nodes) & (children < len(nodes)))[:, is_inner].all()
            and ((self.feature >= 0) & (self.feature < self.num_features))[is_inner].all()
            and ((self.roots >= 0) & (self.roots < len(nodes))).all()
            and np.isfinite(self.value).all()
        )
        if not is_valid:
            raise ValueError("The arrays are not binary trees.")

    @classmethod
    def of_booster(cls, booster: Any) -> Self:
        """Return the trees of an xgboost model."""
        learner = json.loads(bytes(booster.save_raw("json")))["learner"]
        trees = learner["gradient_booster"]["model"]["trees"]
        sizes = [len(tree["left_children"]) for tree in trees]
        roots = np.cumsum([0, *sizes[:-1]])

        def joined(name: str, offsets: np.ndarray | None = None) -> np.ndarray:
            arrays = [np.asarray(tree[name]) for tree in trees]
            if offsets is not None:
                pairs = zip(arrays, offsets, strict=True)
                arrays = [np.where(array < 0, -1, array + offset) for array, offset in pairs]
            return np.concatenate(arrays)

        return cls(
            roots,
            joined("left_children", roots),
            joined("right_children", roots),
            joined("split_indices"),
            joined("split_conditions").astype(np.float32),
            booster.num_features(),
        )

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return the sum over trees, float64 [n], for float32 [n, features]."""
        parts = [
            self._predict(inputs[start : start + _ROWS_AT_ONCE])
            for start in range(0, len(inputs), _ROWS_AT_ONCE)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def _predict(self, inputs: np.ndarray) -> np.ndarray:
        rows = np.arange(len(inputs))[:, None]
        nodes = np.broadcast_to(self.roots, (len(inputs), len(self.roots)))
        while (is_inner := self.left[nodes] >= 0).any():
            is_left = inputs[rows, np.where(is_inner, self.feature[nodes], 0)] < self.value[nodes]
            children = np.where(is_left, self.left[nodes], self.right[nodes])
            nodes = np.where(is_inner, children, nodes)
        return self.value[nodes].sum(axis=1, dtype=np.float64)


class CodeTrees(CostModel):
    """Trees that predict the speed of a compiled schedule relative to the mean of its task.

    Predictions need `Space.machine_code_of`, which compiles each candidate.

    Raises:
        MissingExtraError: xgboost is not installed.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        rounds: int = 400,
        max_depth: int = 8,
        learning_rate: float = 0.05,
        num_threads: int = 1,
    ) -> None:
        self.space, self.rounds = space, rounds
        self._parameters: dict[str, Any] = {
            "max_depth": max_depth,
            "eta": learning_rate,
            "subsample": 0.8,
            "colsample_bytree": 0.5,
            "min_child_weight": 3.0,
            "nthread": num_threads,
            "seed": seed,
            "base_score": 0.0,
            "tree_method": "hist",
            "max_bin": 128,
        }
        self._xgboost = import_xgboost()
        self._trees: Trees | None = None

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit to all successful rows with both kinds of features.

        Raises:
            TuningError: no row has them.
        """
        rows = [row for row in measurements if row.is_ok]
        vectors = self._vectors(features_of_rows(self.space, rows), self._codes(rows))
        usable = [
            (row, vector) for row, vector in zip(rows, vectors, strict=True) if vector is not None
        ]
        if not usable:
            raise TuningError(
                "None of the rows has features of machine code. Add them with `python -m builder "
                "machine-code`, or record again with this version."
            )
        times = np.log([row.latency_ms for row, _ in usable])
        _, task = np.unique([row.task_id for row, _ in usable], return_inverse=True)
        means = np.bincount(task, weights=times) / np.bincount(task)
        inputs = np.stack([vector for _, vector in usable])
        data = self._xgboost.DMatrix(inputs, means[task] - times)
        booster = self._xgboost.train(self._parameters, data, self.rounds)
        self._trees = Trees.of_booster(booster)

    def predict(
        self,
        task: Task,  # noqa: ARG002 - the features describe the task
        candidates: Sequence[Candidate],
    ) -> tuple[np.ndarray, None]:
        """Return the predicted speed relative to the mean of the task, as a factor."""
        features = self.space.features_of(candidates)
        vectors = self._vectors(features, self.space.machine_code_of(candidates))
        means = np.array([-np.inf if vector is None else 1.0 for vector in vectors])
        valid = np.flatnonzero(np.isfinite(means))
        if self._trees is None or not len(valid):
            return means, None
        inputs = np.stack([vector for vector in vectors if vector is not None])
        if inputs.shape[1] != self._trees.num_features:
            raise TuningError(
                f"The trees were trained on vectors of length {self._trees.num_features}, but "
                f"this space computes length {inputs.shape[1]}. Train them on records of this "
                "version."
            )
        means[valid] = np.exp(self._trees.predict(inputs))
        return means, None

    def save(self, path: str | Path) -> None:
        """Write the trees as `.npz` arrays with a JSON header.

        Raises:
            TuningError: the model has not been fitted.
        """
        if self._trees is None:
            raise TuningError("The trees have not been fitted. Call `fit` before `save`.")
        arrays = {name: getattr(self._trees, name) for name in _ARRAYS}
        header = {
            "kind": KIND,
            "version": 1,
            "num_features": self._trees.num_features,
            "feature_set": self.space.feature_set,
            "machine_code_set": self.space.machine_code_set,
        }
        save_arrays(path, arrays, header)

    @classmethod
    def load(cls, path: str | Path, space: Space) -> CodeTrees:
        """Return saved trees.

        Raises:
            TuningError: the file does not contain such trees, or they have other features than
                those of the space.
        """
        arrays, header = load_arrays(path, KIND)
        for name in ("feature_set", "machine_code_set"):
            if header.get(name) != getattr(space, name):
                raise TuningError(
                    f"`{path}` was trained on the features `{header.get(name)}`, but the space "
                    f"computes `{getattr(space, name)}`. Train a model on records of the latter."
                )
        model = cls(space)
        try:
            model._trees = Trees(
                **{name: arrays[name] for name in _ARRAYS},
                num_features=int(header["num_features"]),
            )
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise TuningError(
                f"`{path}` does not contain valid trees: {error} Train and save them again."
            ) from error
        return model

    def _codes(self, rows: Sequence[Measurement]) -> list[np.ndarray | None]:
        """Return the recorded machine code of each row, or else computed by the space, or None."""
        current = self.space.machine_code_set
        missing = [
            index
            for index, row in enumerate(rows)
            if row.machine_code is None or row.machine_code_set != current
        ]
        computed = dict(
            zip(
                missing,
                self.space.machine_code_of([rows[index].candidate for index in missing]),
                strict=True,
            )
        )
        return [computed.get(index, row.machine_code) for index, row in enumerate(rows)]

    def _vectors(
        self, features: Sequence[np.ndarray | None], codes: Sequence[np.ndarray | None]
    ) -> list[np.ndarray | None]:
        """Return float32 [2 f + 1 + n] for each program with both kinds of features."""
        return [
            None
            if matrix is None or code is None or not len(matrix)
            else np.concatenate([pool_features(matrix), log_machine_code(code)], dtype=np.float32)
            for matrix, code in zip(features, codes, strict=True)
        ]
