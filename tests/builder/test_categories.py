"""Categories of problems by operators and data flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from builder.categories import category_of
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

pytestmark = pytest.mark.torch

CACHE = (2, 4, 16, 8)


def _category(
    roles: Sequence[str],
    shape: tuple[int, ...],
    *calls: Any,
    is_scalar: bool = False,
) -> str:
    """Return the category of calls (target, arguments); a str is the place of an input or a call.

    Inputs are `i0`, `i1`, and results are `r0`, `r1`. The role `indices` is an input of integers.
    """
    inputs = tuple(
        Input("input", Value("int64", (16,)))
        if role == "indices"
        else Input(role, Value("float32", shape))
        for role in roles
    )

    def argument(value: Any) -> Any:
        if isinstance(value, str):
            return Ref(int(value[1:]) + (len(inputs) if value[0] == "r" else 0))
        if isinstance(value, list):
            return ListArg(tuple(map(argument, value)))
        return tuple(map(argument, value)) if isinstance(value, tuple) else value

    ops = tuple(
        Op(
            f"torch.{target}",
            tuple(map(argument, arguments)),
            results=(Value("float32", () if is_scalar and place == len(calls) - 1 else shape),),
        )
        for place, (target, *arguments) in enumerate(calls)
    )
    last = Ref(len(inputs) + len(ops) - 1)
    return category_of(Sample("test/category", "torch", "other", inputs, ops, last))


def test_steps_of_optimizers_are_found_without_the_role_of_the_parameter() -> None:
    momentum = (
        ("Tensor.add", "i1", "i0"),
        ("Tensor.mul_", "i2", 0.9),
        ("Tensor.add_", "r1", "r0"),
        ("Tensor.add_", "i0", "r2"),
    )
    assert _category(("input",) * 3, (8,), *momentum) == "optimizers"
    moments = (("Tensor.mul_", "i0", 0.99), ("Tensor.addcmul_", "r0", "i1", "i1"))
    assert _category(("input",) * 2, (8,), *moments) == "optimizers"
    step = (("Tensor.sqrt", "i2"), ("Tensor.addcdiv", "i0", "i1", "r0"))
    assert _category(("input",) * 3, (8,), *step) == "optimizers"
    assert _category(("input",), (8,), ("_foreach_mul_", ["i0"], 0.9)) == "optimizers"


def test_activations_and_running_statistics_are_no_optimizers() -> None:
    activation = (("Tensor.mul_", "i0", 2.0), ("Tensor.add_", "r0", "i1"))
    assert _category(("input",) * 2, (8,), *activation) == "pointwise"
    statistics = (
        ("Tensor.mul_", "i0", 0.9),
        ("Tensor.add_", "r0", "i2"),
        ("Tensor.mul_", "i1", 0.9),
        ("Tensor.add_", "r2", "i3"),
    )
    assert _category(("buffer", "buffer", "input", "input"), (8,), *statistics) == "pointwise"


@pytest.mark.parametrize(
    "calls",
    [
        [("sub", "i0", "i1"), ("square", "r0"), ("mean", "r1")],
        [("log_softmax", "i0", -1), ("mul", "r0", "i1"), ("sum", "r1")],
        [("mul", "i0", "i1"), ("sum", "r0"), ("sum", "i0"), ("div", "r1", "r2"), ("mean", "r3")],
        [("nn.functional.cross_entropy", "i0", "i1")],
    ],
)
def test_means_of_errors_logarithms_and_ratios_are_losses(
    calls: list[tuple[object, ...]],
) -> None:
    assert _category(("input", "input"), (4, 8), *calls, is_scalar=True) == "losses"


def test_a_mean_along_a_dimension_is_no_loss() -> None:
    calls = (("square", "i0"), ("mean", "r0", -1))
    assert _category(("input",), (4, 8), *calls) == "reductions"


def test_attention_with_a_cache_is_serving() -> None:
    attention = "nn.functional.scaled_dot_product_attention"
    roles = ("input", "buffer", "buffer", "indices")
    gathered = (
        ("index_select", "i1", 2, "i3"),
        ("index_select", "i2", 2, "i3"),
        ("Tensor.contiguous", "r1"),
        (attention, "i0", "r0", "r2"),
    )
    assert _category(roles, CACHE, *gathered) == "serving"
    stored = (("Tensor.index_copy_", "i1", 2, "i3", "i0"),)
    assert _category(roles, CACHE, *stored) == "serving"
    appended = (
        ("cat", ["i1", "i0"], -2),
        ("cat", ["i2", "i0"], -2),
        (attention, "i0", "r0", "r1"),
    )
    assert _category(roles, CACHE, *appended) == "serving"


def test_joint_attention_of_two_streams_is_not_serving() -> None:
    calls = (
        *(("cat", [f"i{place}", f"i{place + 3}"], 2) for place in range(3)),
        ("nn.functional.scaled_dot_product_attention", "r0", "r1", "r2"),
    )
    assert _category(("input",) * 6, CACHE, *calls) == "attention"
