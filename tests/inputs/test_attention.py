"""Entropy of attention, and the weights that scale its scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphnet_datasets import Sample
from graphnet_datasets.inputs.attention import (
    find_attention,
    find_factor,
    relative_entropy,
    scores_of,
    weights_behind,
)
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref

ROWS, WIDTH = 6, 8


def floats(*shape: int, role: str = "parameter") -> Input:
    return Input(role, Value("float32", shape))  # type: ignore[arg-type]


def by_hand() -> Sample:
    """Return attention of two projections, a scale and a softmax."""
    inputs = (floats(1, ROWS, WIDTH, role="input"), *[floats(WIDTH, WIDTH)] * 3)
    ops = (
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.nn.functional.linear", (Ref(0), Ref(2))),
        Op("torch.nn.functional.linear", (Ref(0), Ref(3))),
        Op("torch.Tensor.transpose", (Ref(5), 1, 2)),
        Op("torch.matmul", (Ref(4), Ref(7))),
        Op("operator.truediv", (Ref(8), math.sqrt(WIDTH))),
        Op("torch.nn.functional.softmax", (Ref(9),), (("dim", -1),)),
        Op("torch.nn.functional.dropout", (Ref(10), 0.0, False)),
        Op("torch.matmul", (Ref(11), Ref(6))),
    )
    return Sample("attention/by_hand", "torch", "nlp", inputs, ops, Ref(12))


def test_a_softmax_between_products_is_attention_of_both_projections() -> None:
    (position, attention), *others = find_attention(by_hand()).items()
    assert (position, others) == (6, [])
    assert attention.scores == 9
    assert {attention.query_weights, attention.key_weights} == {frozenset({1}), frozenset({2})}
    assert weights_behind(by_hand(), 11 - 3) == frozenset()


def test_a_softmax_at_the_end_is_no_attention() -> None:
    sample = by_hand()
    ops = sample.ops[:7]
    assert find_attention(Sample("a/b", "torch", "nlp", sample.inputs, ops, Ref(10))) == {}


def test_entropy_is_relative_to_the_entries_that_are_not_masked() -> None:
    uniform = np.zeros((3, 5), np.float32)
    assert relative_entropy(uniform) == pytest.approx(1)
    masked = uniform.copy()
    masked[:, 2:] = -np.inf
    masked[0, 1] = -np.inf  # a row of one entry does not count
    assert relative_entropy(masked) == pytest.approx(1)
    assert relative_entropy(masked[:1]) is None
    one_hot = uniform.copy()
    one_hot[:, 0] = 1000
    assert relative_entropy(one_hot) == pytest.approx(0, abs=1e-9)
    shares = np.array([0.5, 0.25, 0.25])
    entropy = -(shares * np.log(shares)).sum() / math.log(3)
    assert relative_entropy(np.log(shares)[None].astype(np.float32)) == pytest.approx(entropy)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_the_factor_moves_the_entropy_to_the_middle(scale: float) -> None:
    scores = (np.random.default_rng(0).normal(size=(20, 32)) * scale).astype(np.float32)
    factor = find_factor(scores)
    assert factor is not None
    assert relative_entropy(scores, factor) == pytest.approx(0.5, abs=0.01)


def test_constant_scores_have_no_factor() -> None:
    assert find_factor(np.ones((4, 6), np.float32)) is None
    assert find_factor(np.full((4, 6), -np.inf, np.float32)) is None


@pytest.mark.parametrize("is_causal", [False, True])
def test_scores_of_the_fused_operator_are_those_of_its_definition(is_causal: bool) -> None:
    generator = np.random.default_rng(1)
    query, key = (generator.normal(size=(2, 3, ROWS, WIDTH)).astype(np.float32) for _ in "qk")
    mask = np.where(generator.random((ROWS, ROWS)) < 0.2, -np.inf, 0).astype(np.float32)
    arguments = (Ref(0), Ref(1), Ref(1), Ref(2), 0.0, is_causal)
    op = Op("torch.nn.functional.scaled_dot_product_attention", arguments)
    inputs = tuple(floats(*array.shape, role="input") for array in (query, key, mask))
    (attention,) = find_attention(
        Sample("attention/fused", "torch", "nlp", inputs, (op,), Ref(3))
    ).values()
    scores = scores_of(attention, lambda value: (query, key, mask)[value])
    expected = query @ key.swapaxes(-1, -2) / math.sqrt(WIDTH) + mask
    if is_causal:
        expected = np.where(np.tri(ROWS, dtype=bool), expected, -np.inf)
    assert scores is not None
    assert np.allclose(scores, expected.reshape(-1, ROWS), rtol=1e-5)


def test_numbers_far_below_zero_are_masked() -> None:
    scores = np.array([[1.0, 2.0, -1e4, -3e38]], np.float32)
    (attention,) = find_attention(by_hand()).values()
    unmasked = scores_of(attention, lambda _: scores)
    assert unmasked is not None
    assert np.isfinite(unmasked).tolist() == [[True, True, False, False]]
