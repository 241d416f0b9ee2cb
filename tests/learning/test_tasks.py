"""Learning tasks of the embedded dataset, their folds and baselines."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from graphnet_datasets import load_dataset, load_sample
from graphnet_datasets.errors import ScoreError
from graphnet_datasets.learning import (
    BASELINES,
    TASKS,
    LearningTask,
    cross_validate,
)
from graphnet_datasets.learning import load_learning_task as load
from graphnet_datasets.learning.baselines import Indices

for package in ("sklearn", "xgboost"):
    pytest.importorskip(package, reason=f"{package} is not installed")


load_learning_task = functools.cache(load)


@pytest.fixture(params=sorted(TASKS))
def task(request: pytest.FixtureRequest) -> LearningTask:
    return load_learning_task(request.param)


def first_rows(task: LearningTask, count: int) -> LearningTask:
    return dataclasses.replace(
        task,
        features=task.features[:count],
        targets=task.targets[:count],
        ids=task.ids[:count],
        groups=task.groups[:count],
        queries=task.queries[:count],
    )


def predict_truth(task: LearningTask, _: Indices, test: Indices) -> np.ndarray:
    return task.targets[test]


def test_each_row_has_features_a_target_and_a_group(task: LearningTask) -> None:
    num_rows = len(task.ids)
    assert num_rows >= 100
    assert len(set(task.ids)) == num_rows
    assert task.features.shape == (num_rows, len(task.feature_names))
    assert len(task.targets) == len(task.groups) == num_rows
    assert np.isfinite(task.features).all()
    assert np.isfinite(task.targets).all()
    assert len(set(task.targets)) > 1


def test_folds_test_each_row_once_and_keep_groups_together(task: LearningTask) -> None:
    groups = np.array(task.groups)
    for split in ("grouped", "random"):
        folds = list(task.folds(split))
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(groups)))
        shared = [set(groups[train]) & set(groups[test]) for train, test in folds]
        assert any(shared) == (split == "random")
        again = list(task.folds(split))
        assert all(np.array_equal(old[1], new[1]) for old, new in zip(folds, again, strict=True))


def test_the_truth_scores_best_and_a_constant_knows_nothing(task: LearningTask) -> None:
    best, constant = cross_validate(task, predict_truth), cross_validate(task, "constant")
    for name, perfect in [("mape", 0), ("accuracy", 1), ("rank_correlation", 1), ("best_of_1", 1)]:
        if name in best:
            assert best[name] == pytest.approx(perfect, abs=1e-9)
            assert abs(constant[name] - perfect) > 0.1


def test_trees_are_better_than_a_constant_on_unseen_families() -> None:
    task = load_learning_task("latency")
    trees, constant = cross_validate(task, "trees"), cross_validate(task, "constant")
    assert trees["median_factor"] < constant["median_factor"]
    assert trees["rank_correlation"] > 0.5


def test_a_latency_is_the_median_of_the_records_of_one_machine() -> None:
    task = load_learning_task("latency")
    environment = task.conditions["environment_id"]
    runs: Any = load_dataset("graphnet", "runs", split="train")
    records = runs.to_pandas()
    chosen = records[
        (records.status == "ok")
        & (records.environment_id == environment)
        & (records.sample_id == task.ids[0])
    ]
    medians = [np.median(times) for times in chosen.baseline_latency_ms]
    assert np.exp(task.targets[0]) == pytest.approx(np.median(medians))


@pytest.mark.parametrize("name", ["ridge", "trees"])
@pytest.mark.parametrize("kind", ["speedup_sign", "schedule_rank"])
def test_baselines_predict_outcomes_and_ranks(name: str, kind: str) -> None:
    rows = first_rows(load_learning_task(kind), 300)
    folds = min(3, len(set(rows.groups)))
    score = cross_validate(rows, name, "random", num_folds=folds)
    assert score.get("auc", 0.5 + score.get("rank_correlation", 0) / 2) > 0.55


@pytest.mark.torch
def test_a_graph_network_learns_the_rows_that_it_was_fitted_to() -> None:
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    from graphnet_datasets.learning.graph_network import fit_and_predict

    task = first_rows(load_learning_task("latency"), 12)
    rows = np.arange(12)
    predicted = fit_and_predict(task, rows, rows, epochs=20)
    errors = np.abs(predicted - task.targets)
    assert errors.mean() < np.abs(task.targets - np.median(task.targets)).mean() / 2
    assert np.array_equal(predicted, fit_and_predict(task, rows, rows, epochs=20))


def test_graphs_follow_the_rows() -> None:
    task = first_rows(load_learning_task("latency"), 3)
    for sample_id, graph in zip(task.ids, task.graphs, strict=True):
        sample = load_sample(sample_id)
        assert len(graph.names) == len(graph.sizes) == len(sample.inputs) + len(sample.ops) + 1
        assert graph.edges.max() == len(graph.names) - 1


def test_mistakes_get_a_sentence() -> None:
    latency = load_learning_task("latency")
    schedules = load_learning_task("schedule_rank")
    mistakes = {
        "There is no learning task `speed`": lambda: load_learning_task("speed"),
        "does not depend on a compiler": lambda: load_learning_task("latency", compiler="tvm"),
        "no records of the compiler `mine`": lambda: load_learning_task(
            "compilable", compiler="mine"
        ),
        "There is no baseline `tree`": lambda: cross_validate(latency, "tree"),
        "There is no split `by_family`": lambda: cross_validate(latency, "trees", "by_family"),  # type: ignore[arg-type]
        "too few for 500 folds": lambda: cross_validate(latency, "trees", num_folds=500),
        "Return one number per test row": lambda: cross_validate(latency, lambda *_: [1.0]),
        "predictions for": lambda: latency.score([1.0]),
        "Rows of `schedule_rank` are schedules": lambda: cross_validate(schedules, "graph_network"),
    }
    for message, call in mistakes.items():
        with pytest.raises(ScoreError, match=message):
            call()
    assert set(BASELINES) == {"constant", "ridge", "trees", "graph_network"}
