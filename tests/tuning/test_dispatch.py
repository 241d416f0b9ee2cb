"""Dispatchers: the right configuration for each kind of input, and only features that pay."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning.dispatch.trees import DecisionTree
from graphnet_datasets.tuning.dispatch.two_level import TwoLevelDispatcher

pytest.importorskip("sklearn")

CONFIGS = ["dense", "sparse", "tiled", "never"]


def make_inputs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Density decides between three; size only scales; the third feature is noise."""
    rng = np.random.default_rng(seed)
    density, size, noise = rng.random(n), rng.uniform(1, 3, n), rng.normal(size=n)
    times = np.stack(
        [
            np.ones(n),
            0.1 + 4 * density,
            np.where((density > 0.2) & (density < 0.6), 0.4, 2.5),
            np.full(n, 5.0),
        ],
        axis=1,
    )
    return np.stack([size, density, noise], axis=1), times * size[:, None]


def test_each_cluster_gets_its_configuration() -> None:
    inputs, times = make_inputs(300, 0)
    dispatcher = TwoLevelDispatcher()
    dispatcher.fit(inputs, CONFIGS, times, np.array([1e-4, 1e-3, 1e-4]))
    assert "never" not in dispatcher.landmarks
    assert 1 in dispatcher.features
    for density, config in ((0.02, "sparse"), (0.4, "tiled"), (0.95, "dense")):
        assert dispatcher.choose(np.array([2.0, density, 0.0])) == config
    held, held_times = make_inputs(300, 1)
    chosen = [CONFIGS.index(dispatcher.choose(each)) for each in held]
    total = held_times[np.arange(300), chosen].sum()
    best_single = held_times.sum(axis=0).min()
    oracle = held_times.min(axis=1).sum()
    assert best_single / total > 1.2
    assert best_single - total > 0.8 * (best_single - oracle)


def test_a_feature_that_costs_more_than_it_gains_is_not_looked_at() -> None:
    inputs, times = make_inputs(200, 2)
    dear = TwoLevelDispatcher()
    dear.fit(inputs, CONFIGS, times, np.array([0.0, 100.0, 0.0]))
    looked: list[int] = []

    def look(index: int) -> float:
        looked.append(index)
        return float(inputs[0, index])

    dear.choose_with(look)
    assert 1 not in looked
    cheap = TwoLevelDispatcher()
    cheap.fit(inputs, CONFIGS, times, np.zeros(3))
    looked.clear()
    cheap.choose_with(look)
    assert 1 in looked
    assert len(looked) == len(set(looked))


def test_inputs_that_do_not_differ_get_one_configuration() -> None:
    inputs = np.random.default_rng(0).random((40, 2))
    times = np.tile([3.0, 1.0], (40, 1))
    dispatcher = TwoLevelDispatcher()
    dispatcher.fit(inputs, ["slow", "fast"], times, np.full(2, 0.01))
    assert dispatcher.chosen == "constant"
    assert dispatcher.features == []
    assert dispatcher.choose(np.array([np.nan, np.nan])) == "fast"


def test_a_configuration_that_fails_where_it_is_fast_is_not_chosen_there() -> None:
    inputs = np.linspace(0, 1, 80)[:, None]
    times = np.stack([np.ones(80), np.where(inputs[:, 0] < 0.5, 0.3, np.inf)], axis=1)
    dispatcher = TwoLevelDispatcher()
    dispatcher.fit(inputs, ["safe", "quick"], times, np.zeros(1))
    assert dispatcher.choose(np.array([0.1])) == "quick"
    assert dispatcher.choose(np.array([0.9])) == "safe"


def test_many_features_are_selected_greedily() -> None:
    inputs, times = make_inputs(150, 3)
    noise = np.random.default_rng(4).normal(size=(150, 6))
    dispatcher = TwoLevelDispatcher(max_depth=3)
    dispatcher.fit(np.concatenate([noise, inputs], axis=1), CONFIGS, times, np.full(9, 1e-3))
    assert 7 in dispatcher.features
    assert len(dispatcher.features) <= 3


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2), st.lists(st.floats(-1, 4), min_size=3, max_size=3))
def test_a_dispatcher_is_its_state(seed: int, features: list[float]) -> None:
    dispatcher = _fitted(seed)
    read = TwoLevelDispatcher.from_state(json.loads(json.dumps(dispatcher.state())))
    assert read.choose(np.array(features)) == dispatcher.choose(np.array(features))
    assert read.state() == dispatcher.state()


_MADE: dict[int, TwoLevelDispatcher] = {}


def _fitted(seed: int) -> TwoLevelDispatcher:
    if seed not in _MADE:
        inputs, times = make_inputs(60, seed)
        _MADE[seed] = TwoLevelDispatcher(seed=seed, max_depth=3)
        _MADE[seed].fit(inputs, CONFIGS, times, np.full(3, 1e-3))
    return _MADE[seed]


@pytest.mark.parametrize(
    "change",
    [
        {"left": [0, 0, 0]},  # a circle
        {"left": [9, 0, 0]},
        {"decision": [0, 5, 0]},
        {"feature": [-2, -1, -1]},
        {"threshold": [0.0]},
        {"feature": []},
        {"is_sure": None},
    ],
)
def test_a_tree_that_would_not_end_is_refused(change: dict) -> None:
    tree = DecisionTree((0, -1, -1), (0.5, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (True,) * 3)
    state = {"landmarks": ["a", "b"], "chosen": "tree", "features": [0]}
    whole = TwoLevelDispatcher.from_state({**state, "trees": [tree.state()]})
    assert whole.choose(np.array([0.2])) == "b"
    with pytest.raises(TuningError):
        TwoLevelDispatcher.from_state({**state, "trees": [{**tree.state(), **change}]})


def test_arrays_that_do_not_fit_are_refused() -> None:
    inputs, times = make_inputs(20, 0)
    costs = np.zeros(3)
    dispatcher = TwoLevelDispatcher()
    with pytest.raises(TuningError, match="has not been fitted"):
        dispatcher.choose(inputs[0])
    with pytest.raises(TuningError, match=r"it must have shape \(20, 2\)"):
        dispatcher.fit(inputs, CONFIGS[:2], times, costs)
    with pytest.raises(TuningError, match="a cost for each of 3 features"):
        dispatcher.fit(inputs, CONFIGS, times, costs[:2])
    with pytest.raises(TuningError, match="must have shape \\[inputs, features\\]"):
        dispatcher.fit(inputs[:, 0], CONFIGS, times, costs)
    with pytest.raises(TuningError, match="an input for which no configuration works"):
        dispatcher.fit(inputs, CONFIGS, np.full_like(times, np.inf), costs)
    with pytest.raises(TuningError, match="must be finite"):
        dispatcher.fit(np.full_like(inputs, np.nan), CONFIGS, times, costs)
    with pytest.raises(TuningError, match="`clusters` must be at least 1"):
        TwoLevelDispatcher(clusters=0)
