"""Sizes that a graph computes are known where shapes are inferred, and are those of a run."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from .test_shapes import CORE, run_shapes

pytestmark = pytest.mark.paddle

X, CPU = Ref(0), Named("place", "cpu")
SIZE = (  # values 2 and 3: the shape of the input, and its first size
    ("shape64", X),
    ("slice", Ref(2), ListArg((0,)), ListArg((0,)), ListArg((1,)), ListArg((1,)), ListArg((0,))),
)


def number(value: float, *shape: int, dtype: str = "int64") -> tuple[Any, ...]:
    return ("full", ListArg(shape), float(value), Named("dtype", dtype), CPU)


def graph(*calls: tuple[Any, ...]) -> Sample:
    """Return a graph of `(operator, *arguments)` on a tensor of s0 x 4 and a whole number."""
    ops = tuple(Op(f"{CORE}{name}", tuple(args)) for name, *args in calls)
    inputs = (Input("input", Value("float32", ("s0", 4))), Input("input", Value("int64", ())))
    return Sample(
        *("test/sizes", "paddle", "other", inputs, ops, Ref(1 + len(ops))),
        symbols=(Symbol("s0", 6),),
    )


def stacked(*parts: Ref) -> tuple[Any, ...]:
    return ("stack", ListArg(parts), 0)


CASES = {
    "as recorded": (
        (*SIZE, number(2), stacked(Ref(3), Ref(4), Ref(4)), ("reshape", X, Ref(5))),
        (6, 2, 2),
        (10, 2, 2),
    ),
    "the rest": (
        (*SIZE, number(-1), stacked(Ref(3), Ref(4)), ("reshape", X, Ref(5))),
        (6, 4),
        (10, 4),
    ),
    "a zero, which stands for the size as it is": (
        (*SIZE, number(0), stacked(Ref(3), Ref(4)), ("reshape", X, Ref(5))),
        (6, 4),
        (10, 4),
    ),
    "scaled": (
        (
            *SIZE,
            number(2, 1, dtype="float32"),
            ("scale", Ref(3), Ref(4), 0.0, True),
            number(2),
            stacked(Ref(5), Ref(6)),
            ("reshape", X, Ref(7)),
        ),
        (12, 2),
        (20, 2),
    ),
    "computed": (
        (
            *SIZE,
            number(2),
            ("multiply", Ref(3), Ref(4)),
            ("add", Ref(5), Ref(4)),
            ("subtract", Ref(6), Ref(4)),
            ("maximum", Ref(7), Ref(4)),
            ("minimum", Ref(4), Ref(8)),
            stacked(Ref(8), Ref(9)),
            ("reshape", X, Ref(10)),
        ),
        (12, 2),
        (20, 2),
    ),
    "joined": (
        (
            SIZE[0],
            (
                "slice",
                Ref(2),
                ListArg((0,)),
                ListArg((0,)),
                ListArg((1,)),
                ListArg((1,)),
                ListArg(()),
            ),
            ("full_int_array", ListArg((2, 2)), Named("dtype", "int64"), CPU),
            ("concat", ListArg((Ref(3), Ref(4))), 0),
            ("reshape", X, Ref(5)),
        ),
        (6, 2, 2),
        (10, 2, 2),
    ),
    "cast and assigned": (
        (
            *SIZE,
            ("cast", Ref(3), Named("dtype", "int32")),
            ("cast", Ref(4), Named("dtype", "int64")),
            number(0),
            ("assign_value_", Ref(6), ListArg(()), Named("dtype", "int64"), ListArg((4.0,)), CPU),
            stacked(Ref(5), Ref(7)),
            ("reshape", X, Ref(8)),
        ),
        (6, 4),
        (10, 4),
    ),
    "expanded": (
        (
            *SIZE,
            number(3),
            number(4),
            stacked(Ref(4), Ref(3), Ref(5)),
            ("expand", X, Ref(6)),
        ),
        (3, 6, 4),
        (3, 10, 4),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_computed_sizes_are_those_of_a_run(name: str) -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    calls, expected, grown = CASES[name]
    sample = graph(*calls)
    (result,) = propagate(sample)[-1] or ()
    assert result.shape == expected == run_shapes(sample)[-1][0]
    (result,) = propagate(sample, {"s0": 10})[-1] or ()
    assert result.shape == grown


UNKNOWN = {
    "of data": (stacked(Ref(1), Ref(1)), ("reshape", X, Ref(2))),
    "changed in place": (
        *SIZE,
        ("assign_value_", Ref(3), ListArg(()), Named("dtype", "int64"), ListArg((3.0,)), CPU),
        number(8),
        stacked(Ref(3), Ref(5)),
        ("reshape", X, Ref(6)),
    ),
    "a fraction": (
        *SIZE,
        number(0.5, 1, dtype="float32"),
        ("scale", Ref(3), Ref(4), 0.0, True),
        number(8),
        stacked(Ref(5), Ref(6)),
        ("reshape", X, Ref(7)),
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_uncertain_values_stay_unknown(name: str) -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    results = propagate(graph(*UNKNOWN[name]))[-1]
    assert results is None or results[0].shape is None


def test_sizes_that_do_not_fit_are_no_shape() -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    for sizes in ((5, 5), (2**31 - 1, 2**31 - 1), (-1, -1)):
        first, second = sizes
        calls = (number(first), number(second), stacked(Ref(2), Ref(3)), ("reshape", X, Ref(4)))
        assert propagate(graph(*calls))[-1] is None


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("value", [2.0**31, 2.0**62, 1e300, float("inf"), float("nan"), -7.0])
def test_numbers_that_no_size_has_end_in_no_error(value: float, dtype: str) -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    whole = Named("dtype", dtype)
    calls = (
        *SIZE,
        ("cast", Ref(3), whole),
        ("scale", Ref(4), value, value, True),
        ("add", Ref(4), Ref(4)),
        stacked(Ref(5), Ref(6)),
        (
            "slice",
            Ref(7),
            ListArg((0,)),
            ListArg((5,)),
            ListArg((9,)),
            ListArg((1,)),
            ListArg((0,)),
        ),
        ("reshape", X, Ref(7)),
    )
    results = propagate(graph(*calls))[-1]
    assert results is None or results[0].shape is None


def test_costs_count_following_operators() -> None:
    from graphnet_datasets.analysis.costs import measure_costs

    sizes = (*SIZE, number(2), stacked(Ref(3), Ref(4), Ref(4)), ("reshape", X, Ref(5)))
    costs = measure_costs(graph(*sizes, ("matmul", Ref(6), Ref(6), False, False)))
    assert costs is not None
    assert costs.flops_coverage == 1.0
    assert costs.flops == 2 * 6 * 2 * 2 * 2
