"""Products that no kernel takes, told without running them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from builder.keeping import checked, faults_of
from builder.mixed_dtypes import mixed_dtypes
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.validation import Validator

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "torch.nn.functional.linear": ((2, 4), (3, 4)),
    "torch.matmul": ((2, 4), (4, 3)),
    "operator.matmul": ((2, 4), (4, 3)),
    "torch.ops.aten.mm.default": ((2, 4), (4, 3)),
    "torch.bmm": ((5, 2, 4), (5, 4, 3)),
    "torch.conv2d": ((1, 3, 8, 8), (4, 3, 3, 3)),
    "torch.nn.functional.conv_transpose1d": ((1, 3, 8), (3, 4, 3)),
}
CALLS: dict[str, Any] = {
    "operator.matmul": torch.matmul,
    "torch.ops.aten.mm.default": torch.mm,
    "torch.nn.functional.linear": torch.nn.functional.linear,
    "torch.nn.functional.conv_transpose1d": torch.nn.functional.conv_transpose1d,
    "torch.matmul": torch.matmul,
    "torch.bmm": torch.bmm,
    "torch.conv2d": torch.conv2d,
}


def product(target: str, *dtypes: Any) -> Sample:
    inputs = tuple(
        Input("input", Value(dtype, shape))
        for dtype, shape in zip(dtypes, SHAPES[target], strict=True)
    )
    return Sample("mixed/sample", "torch", "other", inputs, (Op(target, (Ref(0), Ref(1))),), Ref(2))


@pytest.mark.parametrize("target", SHAPES)
def test_errors_of_torch_are_reported(target: str) -> None:
    for dtypes in (("float32", "bfloat16"), ("float16", "float32"), ("float32", "float64")):
        tensors = [
            torch.ones(shape, dtype=getattr(torch, dtype))
            for shape, dtype in zip(SHAPES[target], dtypes, strict=True)
        ]
        with pytest.raises(RuntimeError):
            CALLS[target](*tensors)
        (said,) = mixed_dtypes(product(target, *dtypes))
        assert all(dtype in said for dtype in dtypes)
    assert mixed_dtypes(product(target, "bfloat16", "bfloat16")) == []


def test_autocast_may_make_them_alike() -> None:
    sample = product("torch.matmul", "float32", "bfloat16")
    enter = Op("torch.amp.autocast_mode._enter_autocast", ("cpu", None, True, None))
    after = Sample(
        *("mixed/cast", "torch", "other", sample.inputs),
        (enter, Op("torch.matmul", (Ref(0), Ref(1)))),
        Ref(3),
    )
    assert mixed_dtypes(after) == []


@pytest.mark.slow
def test_a_large_graph_fails_by_its_readable_problems() -> None:
    wrong, right = (product("torch.matmul", "float32", dtype) for dtype in ("float64", "float32"))
    assert (len(faults_of(wrong)), faults_of(right)) == (1, [])
    with Validator() as validator:
        outcomes = {
            sample.inputs[1].value.dtype: {
                each.check: each.outcome
                for each in checked(
                    {**sample_to_row(sample), "flops": 1e12}, validator, 1e9
                ).results
            }
            for sample in (wrong, right)
        }
    assert outcomes["float64"]["runnable"] == "failed"
    assert outcomes["float32"]["runnable"] == "skipped"
