"""Sizes that native kernels trust."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

from .building import build

IMAGES = Input("input", Value("float32", (2, 4, 3)))
POSITIVE = Statistics(1.0, 0.1, 0.5, 1.5)


def statistics_of(size: int) -> Input:
    return Input("buffer", Value("float32", (size,)), statistics=POSITIVE)


def batch_norm(size: int, target: str = "torch.ops.aten._native_batch_norm_legit") -> Sample:
    refs = (Ref(0), None, None, Ref(1), Ref(2))
    return build(
        Op(target, (*refs, True, 0.1, 1e-5)),
        inputs=(IMAGES, statistics_of(4), statistics_of(size)),
    )


def group_norm(*sizes: Any) -> Sample:
    args = (Ref(0), Ref(1), Ref(1), *sizes, 1e-5)
    return build(
        Op("torch.ops.aten.native_group_norm.default", args), inputs=(IMAGES, statistics_of(4))
    )


def test_statistics_that_fit_are_normalised_with() -> None:
    for sample in (batch_norm(4), group_norm(2, 4, 3, 2)):
        normalised, *_ = materialize(sample)(**make_inputs(sample))
        assert normalised.shape == (2, 4, 3)


@pytest.mark.parametrize("target", ["torch.ops.aten.native_batch_norm", "torch.native_batch_norm"])
def test_statistics_that_do_not_fit_are_refused(target: str) -> None:
    """The kernel would write two elements behind the end of the running variance."""
    with pytest.raises(MaterializeError) as caught:
        materialize(batch_norm(2, target))
    assert str(caught.value) == (
        f"Op 0 (`{target}`) of `example/by_hand`: Expected weights and statistics of 4 elements, "
        "one per channel, got 2."
    )


@pytest.mark.parametrize(
    "sizes",
    [(2, 4, 300, 2), (2, 400, 3, 2), (2, 4, 3, 0), (2, 4, 3, 3), (-2, -4, 3, 1), (2, 4, Ref(0), 1)],
)
def test_groups_that_do_not_fit_are_refused(sizes: tuple[Any, ...]) -> None:
    with pytest.raises(MaterializeError, match="Expected `N`, `C`"):
        materialize(group_norm(*sizes))


def test_operands_that_only_a_run_would_tell_are_refused() -> None:
    sample = build(
        ("torch.Tensor.nonzero", Ref(0)),
        ("torch.Tensor.tolist", Ref(2)),
        ("torch.tensor", Ref(3)),
        Op(
            "torch.ops.aten.native_batch_norm",
            (Ref(4), None, None, Ref(1), Ref(1), True, 0.1, 1e-5),
        ),
        inputs=(IMAGES, statistics_of(4)),
    )
    with pytest.raises(MaterializeError):
        materialize(sample)


def test_the_public_functions_compare_sizes_themselves() -> None:
    images, short = torch.zeros(2, 4, 3), torch.ones(2)
    for call in (torch.batch_norm, torch.ops.aten._batch_norm_impl_index):
        with pytest.raises(RuntimeError, match="running_mean should contain 4 elements not 2"):
            call(images, None, None, short, short, True, 0.1, 1e-5, False)
