"""Baselines for the learning tasks, and their cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MissingExtraError, ScoreError
from .tasks import Indices, LearningTask, Split

Floats = npt.NDArray[np.float64]
Baseline = Callable[[LearningTask, Indices, Indices], npt.ArrayLike]
"""Predicts the test rows of a task from its training rows."""


def cross_validate(
    task: LearningTask,
    baseline: str | Baseline = "trees",
    split: Split = "grouped",
    *,
    num_folds: int = 5,
) -> dict[str, float]:
    """Return the metrics of a model over the test rows of all folds.

    Args:
        task: The task.
        baseline: One of `BASELINES`, or a function of the task and of the indices of training and
            test rows that returns a prediction for each test row, in the units of `task.targets`.
        split: How rows are assigned to folds; see `LearningTask.folds`.
        num_folds: The number of folds.

    Raises:
        ScoreError: The baseline is unknown, unsuitable for the task, or predicts other rows.
        MissingExtraError: A package that the baseline needs is not installed.
    """
    if isinstance(baseline, str):
        if baseline not in BASELINES:
            names = ", ".join(f"`{name}`" for name in BASELINES)
            raise ScoreError(f"There is no baseline `{baseline}`. Choose one of {names}.")
        baseline = BASELINES[baseline]
    predictions = np.zeros(len(task.targets))
    for train, test in task.folds(split, num_folds):
        predicted = np.asarray(baseline(task, train, test), np.float64)
        if predicted.shape != test.shape:
            raise ScoreError(
                f"The model returned predictions of shape {predicted.shape} for {len(test)} test "
                "rows. Return one number per test row."
            )
        predictions[test] = predicted
    return task.score(predictions)


def predict_constant(task: LearningTask, train: Indices, test: Indices) -> Floats:
    """Predict the median of the training rows, or the share of true outcomes."""
    targets = task.targets[train]
    value = targets.mean() if task.kind == "classification" else np.median(targets)
    return np.full(len(test), value)


def predict_ridge(task: LearningTask, train: Indices, test: Indices) -> Floats:
    """Predict by a linear model with an L2 penalty that cross-validation chooses."""
    try:
        from sklearn.linear_model import LogisticRegressionCV, RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "learning", "The baseline `ridge`") from error
    if task.kind == "classification":
        options: dict[str, Any] = {
            "Cs": np.logspace(-4, 1, 6),
            "l1_ratios": (0,),
            "cv": 3,
            "scoring": "neg_log_loss",
            "max_iter": 1000,
            "use_legacy_attributes": False,
        }
        model = make_pipeline(StandardScaler(), LogisticRegressionCV(**options))
        model.fit(task.features[train], task.targets[train] > 0.5)
        return model.predict_proba(task.features[test])[:, 1]
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 5, 13)))
    targets = task.targets[train]
    model.fit(task.features[train], targets)
    # A linear model may predict values far outside of the targets.
    return np.clip(model.predict(task.features[test]), targets.min(), targets.max())


def predict_trees(task: LearningTask, train: Indices, test: Indices) -> Floats:
    """Predict by boosted trees."""
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError("xgboost-cpu", "learning", "The baseline `trees`") from error
    options: dict[str, Any] = {
        "n_estimators": 300,
        "max_depth": 5,
        "learning_rate": 0.05,
        "subsample": 0.8,
        "colsample_bytree": 0.5,
        "random_state": 0,
        "n_jobs": 1,
    }
    if task.kind == "classification":
        classifier = xgboost.XGBClassifier(**options)
        classifier.fit(task.features[train], task.targets[train] > 0.5)
        return np.asarray(classifier.predict_proba(task.features[test]))[:, 1]
    model = xgboost.XGBRegressor(**options)
    model.fit(task.features[train], task.targets[train])
    return np.asarray(model.predict(task.features[test]), np.float64)


def predict_graph_network(task: LearningTask, train: Indices, test: Indices) -> Floats:
    """Predict by a graph network over the data flow, joined with the features of the graph.

    A node has an embedding of its operator and the size of its value. Three layers of GraphSAGE
    (Hamilton et al., 2017) pass messages along the data flow and against it; the sum and the
    maximum over nodes, joined with the standardised features, go through two linear layers.
    """
    from .graph_network import fit_and_predict

    return fit_and_predict(task, train, test)


BASELINES: Mapping[str, Baseline] = {
    "constant": predict_constant,
    "ridge": predict_ridge,
    "trees": predict_trees,
    "graph_network": predict_graph_network,
}
"""The baselines by name. `graph_network` needs graphs and does not predict `schedule_rank`."""
