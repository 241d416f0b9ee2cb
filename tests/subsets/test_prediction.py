"""The samples whose scores predict those of all."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.scores import log_contributions, speedup_score
from graphnet_datasets.subsets import predict
from graphnet_datasets.subsets.prediction import SCORED_T, herd


def run(sample: str, compiler: str, speedup: float, **more: Any) -> dict[str, Any]:
    return {
        "sample_id": sample, "family": sample.partition("/")[0], "compiler": compiler,
        "status": "ok", "speedup": speedup, "min_t": -7.0, **more,
    }  # fmt: skip


def records(num_samples: int, num_compilers: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return records of compilers that win and fail much on the same graphs, and by chance."""
    draws = np.random.default_rng(seed)
    rows = []
    for sample in range(num_samples):
        gain, is_hard = draws.normal(0.3, 0.4), draws.random() < 0.15
        for compiler in range(num_compilers):
            speedup = math.exp(gain * (1 + compiler / 4) + draws.normal(0, 0.05))
            has_failed = draws.random() < (0.8 if is_hard else 0.02)
            more = {"status": "compile_failed", "speedup": None} if has_failed else {}
            rows.append(run(f"family-{sample}/model", f"compiler-{compiler}", speedup) | more)
    return rows


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(["ok", "run_failed", "compile_failed", "baseline_failed"]),
            st.floats(0.1, 10.0),
            st.floats(-9.0, 1.0),
        ),
        min_size=1,
        max_size=8,
    ).filter(lambda rows: any(status != "baseline_failed" for status, _, _ in rows)),
    st.sampled_from(["report", "upstream", "upstream-extended"]),
)
def test_a_score_is_the_geometric_mean_of_contributions(
    given: list[tuple[str, float, float]], variant: str
) -> None:
    rows = [
        run(f"f/{place}", "one", speedup, status=status, min_t=t)
        | ({} if status == "ok" else {"speedup": None, "min_t": None})
        for place, (status, speedup, t) in enumerate(given)
    ]
    scores = speedup_score(rows, variant=variant, has_intervals=False)
    ids, logs = log_contributions(rows, variant=variant)
    assert len(ids) == scores.num_samples
    for t, row in zip(scores["t"], logs, strict=True):
        expected = scores.at(t)["S"]
        if expected is not None:
            assert math.exp(row.mean()) == pytest.approx(expected)


def test_the_variant_that_leaves_samples_out_has_no_contributions() -> None:
    with pytest.raises(ScoreError, match="counts different samples at each t"):
        log_contributions([run("a/b", "one", 2.0)], variant="decidable")


@hypothesis.given(st.integers(1, 20), st.integers(0, 5))
def test_all_samples_predict_themselves(count: int, seed: int) -> None:
    found = predict(records(count, 2, seed), count, counts=())
    assert len(set(found.ids)) == found.num_samples
    for name, scores in found.actual.items():
        assert found.predicted[name] == pytest.approx(scores)


def test_few_chosen_samples_are_nearer_than_random_ones() -> None:
    found = predict(records(120, 4), 10, counts=(10, 30, 100, 500))
    assert [error.count for error in found.errors] == [10, 30, 100]
    for error in found.errors[:2]:
        assert error.of_compilers is not None and error.of_compilers_random is not None
        assert error.of_compilers < error.of_compilers_random
        assert error.of_graphs is not None and error.of_graphs_random is not None
        assert error.of_graphs < error.of_graphs_random
    text = str(found)
    assert "10 of 120 samples" in text and "compiler-0" in text


def test_the_same_records_in_another_order_give_the_same_choice() -> None:
    rows = records(40, 3)
    assert predict(rows, 7).ids == predict(rows[::-1], 7).ids


def test_one_compiler_alone_cannot_be_left_out() -> None:
    found = predict(records(30, 1), 5, counts=(5,))
    assert found.errors[0].of_compilers is None
    assert found.errors[0].of_graphs is not None
    assert len(found.actual["compiler-0"]) == len(SCORED_T)


def test_herding_comes_nearer_the_more_it_takes() -> None:
    features = np.random.default_rng(0).normal(size=(200, 6))
    order = herd(features, 100)
    distances = [
        float(np.linalg.norm(features[order[:size]].mean(0) - features.mean(0)))
        for size in (1, 10, 100)
    ]
    assert distances == sorted(distances, reverse=True) and distances[-1] < 0.05


@pytest.mark.parametrize(
    ("rows", "count", "sentence"),
    [
        ([], 5, "There are no run records"),
        (
            [run("a/x", "one", 2.0), run("b/x", "other", 2.0)],
            5,
            "No sample has a counted record for each of",
        ),
        ([run("a/x", "one", 2.0)], 0, "`count` must be at least 1, got 0"),
    ],
)
def test_records_that_tell_nothing(rows: list[Any], count: int, sentence: str) -> None:
    with pytest.raises(ScoreError, match=sentence):
        predict(rows, count)
