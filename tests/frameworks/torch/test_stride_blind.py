"""Operands that share memory are refused where a kernel ignores strides."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks.torch.walking.stride_blind import has_own_elements
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

ATEN = "torch.ops.aten."
NORM = (1, 6, 3, 2)
LONG = 2_000_000
"""Elements that lie in four bytes: reading them one by one leaves every mapping of a process."""


def value(*shape: int, stride: tuple[int, ...] | None = None) -> Input:
    return Input("input", Value("float32", shape, stride))


def sample_of(target: str, inputs: tuple[Input, ...], *more: Any) -> Sample:
    refs = tuple(map(Ref, range(len(inputs))))
    return Sample(
        "example/blind", "torch", "other", inputs, (Op(target, (*refs, *more)),), Ref(len(inputs))
    )


def heads(rows: int, stride: tuple[int, ...] | None = None) -> Input:
    return value(1, 2, rows, 8, stride=stride)


FLAT = (0, 0, 0, 0)
MASK = ListArg((True, True, True))
FLASH = f"{ATEN}_scaled_dot_product_flash_attention_for_cpu"
ATTACKS = {
    "median": sample_of("torch.median", (value(LONG, stride=(0,)),), 0),
    "median of a method": sample_of("torch.Tensor.median", (value(4, LONG, stride=(1, 0)),), 1),
    "median.dim": sample_of(f"{ATEN}median.dim", (value(LONG, stride=(0,)),), 0, False),
    "nanmedian": sample_of("torch.nanmedian", (value(LONG, stride=(0,)),), 0),
    "nanmedian.dim": sample_of(f"{ATEN}nanmedian.dim", (value(LONG, stride=(0,)),), 0, True),
    "median of windows": sample_of("torch.median", (value(900, 900, stride=(1, 1)),), 1),
    "attention": sample_of(f"{FLASH}.default", (heads(3), heads(5, FLAT), heads(5))),
    "attention, rows": sample_of(f"{FLASH}.default", (heads(3), heads(5), heads(5, (0, 0, 0, 1)))),
    "gradient of attention": sample_of(
        f"{FLASH}_backward.default",
        (heads(3), heads(3), heads(5), heads(5), heads(3, FLAT), value(1, 2, 3)),
        0.0,
        False,
    ),
    "gradient of layer norm": Sample(
        "example/blind",
        "torch",
        "other",
        (value(LONG, 1), value(LONG, 1, stride=(0, 0)), value(LONG, 1)),
        (
            Op(
                f"{ATEN}native_layer_norm_backward.default",
                (
                    *(Ref(0), Ref(0), ListArg((1,)), Ref(2), Ref(1), None, None),
                    ListArg((True, False, False)),
                ),
            ),
        ),
        Ref(3),
    ),
    "group norm": sample_of(
        f"{ATEN}native_group_norm.default",
        (value(1, 6, 3), value(6, stride=(0,)), value(6)),
        *NORM,
        1e-5,
    ),
    "gradient of group norm": sample_of(
        f"{ATEN}native_group_norm_backward.default",
        (value(1, 6, 3), value(1, 6, 3, stride=(0, 0, 0)), value(1, 2), value(1, 2), value(6)),
        *NORM,
        MASK,
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_operands_that_share_memory_are_refused(name: str) -> None:
    for is_allowed in (False, True):
        with pytest.raises(MaterializeError, match="Make the operand contiguous first"):
            materialize(ATTACKS[name], allow_unchecked_operators=is_allowed)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_same_call_runs_on_contiguous_operands(name: str) -> None:
    attack = ATTACKS[name]
    inputs = tuple(
        Input("input", Value("float32", tuple(min(size, 9) for size in item.value.shape or ())))
        for item in attack.inputs
    )
    sample = Sample(attack.id, "torch", "other", inputs, attack.ops, attack.outputs)
    materialize(sample)(**make_inputs(sample))


def test_operands_expanded_along_a_batch_reach_attention() -> None:
    """Heads that share keys are common, and the kernel follows the strides of batch and heads."""
    shared = heads(5, (0, 0, 8, 1))
    sample = sample_of(f"{FLASH}.default", (heads(3), shared, shared))
    outputs = materialize(sample)(**make_inputs(sample))
    assert outputs[0].shape == (1, 2, 3, 8)


def test_a_view_of_the_graph_is_refused_as_well() -> None:
    ops = (Op("torch.Tensor.expand", (Ref(0), 4, LONG)), Op("torch.median", (Ref(1), 1)))
    sample = Sample("example/view", "torch", "other", (value(4, 1),), ops, Ref(2))
    with pytest.raises(MaterializeError, match=r"stride \[1, 0\]"):
        materialize(sample)


def test_a_size_that_a_run_decides_may_have_a_median() -> None:
    ops = (
        Op("operator.gt", (Ref(0), 0.0)),
        Op("torch.masked_select", (Ref(0), Ref(1))),
        Op("torch.median", (Ref(2), 0)),
    )
    sample = Sample("example/selected", "torch", "other", (value(6),), ops, Ref(3))
    materialize(sample, allow_unchecked_operators=True)(input_0=torch.arange(6.0))


def test_elements_of_their_own() -> None:
    base = torch.arange(24.0)
    assert has_own_elements(base.as_strided((2, 3, 4), (1, 8, 2)))
    assert has_own_elements(base.as_strided((1, 3), (0, 2)))
    assert not has_own_elements(base.as_strided((3, 3), (1, 2)))
    assert has_own_elements(torch.empty((0, 3)).expand(0, 3))
