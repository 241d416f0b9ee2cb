"""Operands that the kernels of gradients trust."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from .building import build

ALL = ListArg((True, True, True))
IMAGE, KERNEL, ROW = (2, 4, 6, 6), (4, 4, 3, 3), (4,)
QUERY = (1, 2, 3, 8)
FLOAT = Named("dtype", "float32")


def ints(*numbers: int) -> ListArg:
    return ListArg(numbers)


VALID: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[Any, ...]]] = {
    "convolution_backward.default": (
        ((2, 4, 4, 4), IMAGE, KERNEL),
        (ints(4), ints(1, 1), ints(0, 0), ints(1, 1), False, ints(0, 0), 1, ALL),
    ),
    "native_layer_norm_backward.default": (
        ((3, 4), (3, 4), (3, 1), (3, 1), ROW, ROW),
        (Ref(0), Ref(1), ints(4), Ref(2), Ref(3), Ref(4), Ref(5), ALL),
    ),
    "native_group_norm_backward.default": (
        (IMAGE, IMAGE, (2, 2), (2, 2), ROW),
        (2, 4, 36, 2, ALL),
    ),
    "native_batch_norm_backward.default": (
        (IMAGE, IMAGE, ROW, ROW, ROW, ROW, ROW),
        (True, 1e-5, ALL),
    ),
    "_adaptive_avg_pool2d_backward.default": (((2, 4, 2, 2), IMAGE), ()),
    "avg_pool2d_backward.default": (
        ((2, 4, 3, 3), IMAGE),
        (ints(2, 2), ints(2, 2), ints(0, 0), False, True, None),
    ),
    "_weight_norm_interface_backward.default": (((4, 3), (4, 3), (4, 1), (4, 1)), (0,)),
    "_softmax_backward_data.default": (((3, 4), (3, 4)), (1, FLOAT)),
    "_scaled_dot_product_flash_attention_for_cpu_backward.default": (
        (QUERY, QUERY, QUERY, QUERY, QUERY, (1, 2, 3)),
        (0.0, False),
    ),
}
"""Shapes of the tensors of a call, and its other arguments behind them (or all arguments)."""


def sample_of(name: str, change: int | None = None) -> Any:
    """Return a call, with the tensor number `change` one element shorter in its last dimension."""
    shapes, rest = VALID[name]
    sizes = [list(shape) for shape in shapes]
    if change is not None:
        sizes[change][-1] += 3
    given = rest if rest and rest[0] == Ref(0) else (*map(Ref, range(len(shapes))), *rest)
    inputs = tuple(Input("input", Value("float32", tuple(size))) for size in sizes)
    return build(Op(f"torch.ops.aten.{name}", given), inputs=inputs)


@pytest.mark.parametrize("name", VALID)
def test_operands_that_fit_are_taken(name: str) -> None:
    sample = sample_of(name)
    materialize(sample)(**make_inputs(sample))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (name, place)
        for name, (shapes, _) in VALID.items()
        for place in range(len(shapes))
        # Any image fits a gradient of adaptive pooling.
        if "adaptive" not in name
    ],
)
def test_operands_that_do_not_fit_are_refused(name: str, place: int) -> None:
    with pytest.raises(MaterializeError, match="Expected `"):
        materialize(sample_of(name, place))


@pytest.mark.parametrize(("heads", "fits"), [(1, True), (2, True), (3, False), (8, False)])
def test_heads_of_keys_divide_those_of_queries(heads: int, fits: bool) -> None:
    """The kernel reads beyond its tensors with 3 heads for 4, and divides by 0 with 8."""
    shapes = ((1, 4, 3, 8), (1, heads, 5, 8), (1, heads, 5, 8))
    sample = build(
        Op(
            "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default",
            (Ref(0), Ref(1), Ref(2)),
        ),
        Op("operator.getitem", (Ref(3), 0)),
        inputs=tuple(Input("input", Value("float32", shape)) for shape in shapes),
    )
    if fits:
        materialize(sample)(**make_inputs(sample))
        return
    with pytest.raises(MaterializeError, match="Expected `key` of shape"):
        materialize(sample)


def test_adaptive_pooling_of_other_channels_is_refused() -> None:
    sample = build(
        Op("torch.ops.aten._adaptive_avg_pool2d_backward.default", (Ref(0), Ref(1))),
        inputs=tuple(Input("input", Value("float32", shape)) for shape in ((2, 9, 2, 2), IMAGE)),
    )
    with pytest.raises(MaterializeError, match="Expected `grad_output` to have the batch"):
        materialize(sample)


@pytest.mark.parametrize(
    "rest",
    [
        (ints(4), ints(0, 1), ints(0, 0), ints(1, 1), False, ints(0, 0), 1, ALL),
        (ints(4), ints(1, 1), ints(-1, 0), ints(1, 1), False, ints(0, 0), 1, ALL),
        (ints(4), ints(1, 1), ints(0, 0), ints(1, 1), False, ints(0, 0), 3, ALL),
        (ints(5), ints(1, 1), ints(0, 0), ints(1, 1), False, ints(0, 0), 1, ALL),
        (ints(4), ints(1, 1), ints(0, 0), ints(1, 1), True, ints(0, 0), 1, ALL),
        (ints(4), ints(1, 1), ints(0, 0), ints(1, 1), False, ints(0, 0), 1, ListArg((True,))),
    ],
)
def test_numbers_that_do_not_fit_a_convolution_are_refused(rest: tuple[Any, ...]) -> None:
    shapes, _ = VALID["convolution_backward.default"]
    sample = build(
        Op("torch.ops.aten.convolution_backward.default", (Ref(0), Ref(1), Ref(2), *rest)),
        inputs=tuple(Input("input", Value("float32", shape)) for shape in shapes),
    )
    with pytest.raises(MaterializeError, match="Expected `"):
        materialize(sample)
