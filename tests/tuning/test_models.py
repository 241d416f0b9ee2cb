"""Cost models on the toy space: they rank tasks they never saw, and refuse what does not fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import (
    CostModel,
    Measurement,
    Origin,
    Space,
    TrialStatus,
    normalised_throughput,
)
from graphnet_datasets.tuning.models.arrays import load_arrays, save_arrays
from graphnet_datasets.tuning.models.code_trees import KIND, CodeTrees, Trees
from graphnet_datasets.tuning.models.gbdt import GbdtModel
from graphnet_datasets.tuning.models.gnn import GnnModel
from graphnet_datasets.tuning.models.gp import GpModel
from graphnet_datasets.tuning.models.pooling import task_vector
from graphnet_datasets.tuning.models.predictor import Predictor
from graphnet_datasets.tuning.models.ranking import batches, rank_loss
from graphnet_datasets.tuning.tuners.oneshot import load_model

from .toy import TASKS, ToyMeasurer, ToySpace, make_task

SEEN = [make_task(32, 64, 64), make_task(64, 64, 256), make_task(128, 128, 64)]
HELD = make_task(96, 128, 128)

MAKERS: dict[str, tuple[str, Callable[[Space], CostModel]]] = {
    "gbdt": ("xgboost", lambda space: GbdtModel(space, rounds=40)),
    "predictor": ("torch", lambda space: Predictor(space, [*SEEN, HELD], epochs=25, width=32)),
    "code trees": ("xgboost", lambda space: CodeTrees(space, rounds=60)),
    "gnn": ("torch_geometric", lambda space: GnnModel(space, epochs=10, members=2, width=24)),
    "gnn with code": (
        "torch_geometric",
        lambda space: GnnModel(space, epochs=10, members=2, width=24, uses_machine_code=True),
    ),
}


def rows_of(tasks: list, each: int, seed: int = 1) -> tuple[ToySpace, list[Measurement]]:
    space = ToySpace([*tasks, HELD])
    measurer = ToyMeasurer(space)
    return space, [row for t in tasks for row in measurer.measure(space.sample(t, each, seed))]


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_model_ranks_a_task_that_it_never_saw(name: str) -> None:
    package, make = MAKERS[name]
    pytest.importorskip(package)
    space, rows = rows_of(SEEN, 60)
    model = make(space)
    test = [row for row in ToyMeasurer(space).measure(space.sample(HELD, 150, 9)) if row.is_ok]
    candidates = [row.candidate for row in test]
    before, _ = model.predict(HELD, candidates)
    assert np.ptp(before) == 0
    model.fit(rows)
    scores, _ = model.predict(HELD, candidates)
    assert spearmanr(scores, normalised_throughput(test)).statistic > 0.5
    again, _ = model.predict(HELD, candidates[:7])
    assert again == pytest.approx(scores[:7], abs=1e-5)


@pytest.mark.parametrize("name", ["gbdt", "predictor", "code trees"])
def test_unschedulable_candidates_rank_last(name: str) -> None:
    package, make = MAKERS[name]
    pytest.importorskip(package)
    space, rows = rows_of(SEEN, 60)
    model = make(space)
    model.fit(rows)
    drawn = space.sample(HELD, 300, 2)
    scores, _ = model.predict(HELD, drawn)
    inputs = [space.features_of(drawn)]
    if name == "code trees":
        inputs.append(space.machine_code_of(drawn))
    lacking = [any(array is None for array in arrays) for arrays in zip(*inputs, strict=True)]
    assert any(lacking)
    assert (np.isneginf(scores) == lacking).all()


def test_trees_learn_from_failures_only_by_their_least_weight() -> None:
    pytest.importorskip("xgboost")

    class Line(ToySpace):
        def features(self, candidate):
            return np.array([[float(len(candidate.trace_json))]], np.float32)

    def row(length: int, *times: float) -> Measurement:
        status = TrialStatus.OK if times else TrialStatus.CRASH
        return Measurement(TASKS[0].task_id, "x" * length, Origin.RANDOM, status, times)

    rows = [*(row(length, 1.0) for length in range(1, 20)), *(row(30 + i) for i in range(20))]
    candidates = [rows[3].candidate, rows[-3].candidate]
    space = Line()
    weighted, blind = GbdtModel(space), GbdtModel(space, least_weight=0.0)
    for model in (weighted, blind):
        model.fit(rows)
    good, bad = weighted.predict(TASKS[0], candidates)[0]
    assert good > 0.9
    assert bad < 0.1
    good, bad = blind.predict(TASKS[0], candidates)[0]
    assert good == pytest.approx(bad, abs=0.05)


def test_features_of_two_kinds_are_not_mixed() -> None:
    pytest.importorskip("xgboost")
    space, rows = rows_of(SEEN, 4)
    timed = next(row for row in rows if row.features is not None)
    with pytest.raises(TuningError, match="features of `other`, but the space computes `toy-1`"):
        GbdtModel(space).fit([dataclasses.replace(timed, feature_set="other")])


def test_one_process_over_all_tasks_knows_more_than_one_of_its_own() -> None:
    pytest.importorskip("gpytorch")
    space, rows = rows_of([*SEEN[:2], HELD], 28)
    few = [row for row in rows if row.task_id == HELD.task_id and row.is_ok][:4]
    others = [row for row in rows if row.task_id != HELD.task_id]
    test = [row for row in ToyMeasurer(space).measure(space.sample(HELD, 80, 4)) if row.is_ok]
    candidates = [row.candidate for row in test]
    found = {}
    for name, given in (("alone", few), ("together", [*others, *few])):
        model = GpModel(space, iterations=8)
        model.know(candidates)
        model.fit(given)
        mean, covariance = model.posterior(HELD, candidates)
        assert (np.diag(covariance) > 0).all()
        found[name] = spearmanr(mean, [row.latency_ms for row in test]).statistic
        throughput, std = model.predict(HELD, candidates)
        assert std is not None
        assert spearmanr(throughput, -mean).statistic == pytest.approx(1.0)
    assert found["together"] > found["alone"] + 0.1
    with pytest.raises(TuningError, match="was not passed to `know`"):
        model.posterior(HELD, space.sample(HELD, 3, 77))
    with pytest.raises(TuningError, match="has not been fitted to any row"):
        model.posterior(TASKS[0], [])


def test_a_process_is_certain_at_its_data() -> None:
    pytest.importorskip("gpytorch")
    space, rows = rows_of([HELD], 30)
    ok = [row for row in rows if row.is_ok]
    model = GpModel(space, iterations=8, latent=None, max_rows=20)
    far = space.sample(HELD, 40, 8)
    model.know(far)
    model.fit(rows)
    fastest = min(ok, key=lambda row: row.latency_ms)
    mean, covariance = model.posterior(HELD, [fastest.candidate, *far])
    assert mean[0] == pytest.approx(np.log(fastest.latency_ms), abs=0.35)
    assert covariance[0, 0] < np.median(np.diag(covariance)[1:])
    with pytest.raises(TuningError, match="must be at least 1 or None"):
        GpModel(space, latent=0)


def test_the_likelihood_tells_related_tasks_from_others() -> None:
    pytest.importorskip("gpytorch")
    space, rows = rows_of(SEEN[:2], 28)
    ok = [row for row in rows if row.is_ok]
    opposed = [
        dataclasses.replace(row, times_ms=tuple(1 / each for each in row.times_ms))
        if row.task_id == SEEN[0].task_id
        else row
        for row in ok
    ]
    logits = []
    for given in (ok, opposed):
        model = GpModel(space, iterations=15)
        model.fit(given)
        ((count, found),) = model.state().values()
        assert count == len(given)
        logits.append(found["over_tasks.0.raw_rho"])
    assert logits[0] > logits[1] + 1


def test_a_predictor_is_its_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    space, rows = rows_of(SEEN, 20)
    predictor = Predictor(space, SEEN, epochs=2, width=16)
    with pytest.raises(TuningError, match="has not been fitted"):
        predictor.save(tmp_path / "p.npz")
    predictor.fit(rows)
    predictor.save(tmp_path / "p.npz")
    drawn = space.sample(HELD, 20, 0)
    read = Predictor.load(tmp_path / "p.npz", space)
    assert read.predict(HELD, drawn)[0].tolist() == predictor.predict(HELD, drawn)[0].tolist()
    with pytest.raises(TuningError, match="belong to 1 tasks that are unknown"):
        Predictor(space, SEEN[:2]).fit(rows)
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", x=np.array([{}], dtype=object))
    for name in ("other", "pickled", "missing"):
        with pytest.raises(TuningError, match="cannot be read as a trained"):
            Predictor.load(tmp_path / f"{name}.npz", space)


def test_trees_are_those_of_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    random = np.random.default_rng(0)
    inputs = random.normal(size=(400, 6)).astype(np.float32)
    data = xgboost.DMatrix(inputs, inputs[:, 0] * inputs[:, 1] + np.sin(inputs[:, 2]))
    booster = xgboost.train({"base_score": 0.0, "max_depth": 5, "nthread": 1}, data, 30)
    trees = Trees.of_booster(booster)
    assert trees.predict(inputs) == pytest.approx(booster.predict(data), abs=1e-5)
    assert trees.predict(inputs[:0]).shape == (0,)


def test_trees_are_their_file(tmp_path: Path) -> None:
    pytest.importorskip("xgboost")
    space, rows = rows_of(SEEN, 20)
    model, path = CodeTrees(space, rounds=5), tmp_path / "trees.npz"
    with pytest.raises(TuningError, match="have not been fitted"):
        model.save(path)
    model.fit(rows)
    model.save(path)
    drawn = space.sample(HELD, 20, 0)
    read = CodeTrees.load(path, space)
    assert read.predict(HELD, drawn)[0].tolist() == model.predict(HELD, drawn)[0].tolist()
    assert isinstance(load_model(path, space), CodeTrees)
    other = ToySpace(SEEN)
    other.machine_code_set = "toy-code-2"
    with pytest.raises(TuningError, match="features `toy-code-1`, but the space computes `toy-c"):
        CodeTrees.load(path, other)


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", 0), ("right", 10**9), ("feature", 10**6), ("roots", -1), ("value", np.nan)],
)
def test_a_file_whose_trees_point_elsewhere_is_refused(
    name: str, value: float, tmp_path: Path
) -> None:
    pytest.importorskip("xgboost")
    space, rows = rows_of(SEEN, 20)
    model, path = CodeTrees(space, rounds=5), tmp_path / "trees.npz"
    model.fit(rows)
    model.save(path)
    arrays, header = load_arrays(path, KIND)
    changed = arrays[name].copy()
    changed[0] = value
    save_arrays(path, {**arrays, name: changed}, header)
    with pytest.raises(TuningError, match="does not contain valid trees"):
        CodeTrees.load(path, space)


@pytest.mark.parametrize("name", ["roots", "left", "right", "feature"])
@pytest.mark.parametrize("is_float", [True, False], ids=["float", "matrix"])
def test_a_file_whose_trees_have_no_indices_is_refused(
    name: str, is_float: bool, tmp_path: Path
) -> None:
    pytest.importorskip("xgboost")
    space, rows = rows_of(SEEN, 20)
    model, path = CodeTrees(space, rounds=5), tmp_path / "trees.npz"
    model.fit(rows)
    model.save(path)
    arrays, header = load_arrays(path, KIND)
    changed = arrays[name].astype(np.float64) if is_float else arrays[name][:, None]
    save_arrays(path, {**arrays, name: changed}, header)
    with pytest.raises(TuningError, match="does not contain valid trees"):
        CodeTrees.load(path, space)


def test_trees_need_machine_code() -> None:
    pytest.importorskip("xgboost")
    _, rows = rows_of(SEEN, 4)

    class Uncompiled(ToySpace):
        def machine_code(self, candidate):  # noqa: ARG002 - no candidate compiles
            raise TuningError("There is no compiler.")

    with pytest.raises(TuningError, match="None of the rows has features of machine code"):
        CodeTrees(Uncompiled(SEEN)).fit(rows)


def test_the_ranking_loss_is_of_pairs_weighted_by_their_difference() -> None:
    torch = pytest.importorskip("torch")
    labels = torch.tensor([1.0, 0.5, 0.5])
    scores = torch.tensor([0.3, 0.1, -4.0])
    log = np.log1p(np.exp([0.1 - 0.3, -4.0 - 0.3]))
    assert float(rank_loss(scores, labels)) == pytest.approx(float(log.mean()), rel=1e-5)
    assert float(rank_loss(scores, torch.ones(3))) == 0.0


def test_an_epoch_has_every_row_once() -> None:
    ids = ["a"] * 100 + ["b"] * 3 + ["c"] * 50
    groups = [each for batch in batches(ids, np.random.default_rng(0)) for each in batch]
    assert sorted(np.concatenate(groups)) == list(range(len(ids)))
    assert all(len({ids[index] for index in group}) == 1 for group in groups)


def test_the_vector_of_a_task_has_its_sizes() -> None:
    vector = task_vector(make_task(7, 15, 31))
    assert vector.shape == (44,)
    assert vector[:2].tolist() == [3.0, 5.0]
    wide = dataclasses.replace(
        TASKS[0], arg_shapes=((1, 2, 3, 4, 5, 6),) * 8, arg_dtypes=("int8",) * 8
    )
    assert task_vector(wide)[4] == pytest.approx(np.log2(31))
    assert task_vector(wide)[5] == 1.0
