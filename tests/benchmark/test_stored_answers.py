"""A cache of the first outputs is found out on embedded graphs; `benchmarks/` takes all of them."""

from __future__ import annotations

import pytest

from benchmarks.stored_answers import figure_of, small_graphs, summary
from graphnet_datasets import Sample
from tests.benchmark.samples import LINEAR, RUNNING_STATISTICS

INTEGERS_ALONE = (
    "torch/text-cnn-small", "torch/gru-language-model-small", "torch/ncf", "torch/two-towers",
    "torch/deepfm-small", "torch/din-small", "torch/wide-and-deep-small", "torch/deep-cross-small",
)  # fmt: skip
"""Embedded graphs whose only data are stored integers."""


def test_a_cache_is_wrong_where_only_stored_integers_go_in() -> None:
    samples = [each for each in small_graphs(60, ["torch"]) if each.id in INTEGERS_ALONE]
    figures = [figure_of(sample) for sample in samples]
    assert [figure["sample"] for figure in figures if figure["verdict"] != "wrong"] == []
    assert {figure["sample"] for figure in figures} == set(INTEGERS_ALONE)
    assert all(figure["is_fresh"] for figure in figures)


@pytest.mark.parametrize(
    "most", [8, pytest.param(60, marks=pytest.mark.slow)], ids=["smallest", "small"]
)
def test_a_cache_is_found_out_on_each_small_graph(most: int) -> None:
    samples = [each for each in small_graphs(most, ["torch"]) if not decides_a_branch(each)]
    found = summary([figure_of(sample) for sample in samples])
    assert (found["right"], found["not_timed"]) == ([], [])
    assert found["graphs"] >= 1


def decides_a_branch(sample: Sample) -> bool:
    """Tell whether a graph ends with one boolean, as pieces do where a model breaks on an `if`.

    Nearly all inputs give the same one, so it is not timed.
    """
    results = sample.ops[-1].results or ()
    return [(each.dtype, each.shape) for each in results] == [("bool", ())]


def test_stored_answers_of_varying_outputs_are_wrong() -> None:
    verdicts = {sample.id: figure_of(sample)["verdict"] for sample in (LINEAR, RUNNING_STATISTICS)}
    assert set(verdicts.values()) == {"wrong"}
