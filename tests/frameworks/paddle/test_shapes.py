"""Shapes inferred without running, against the shapes of real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

from .installed import paddle
from .test_source import read

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."


def run_shapes(sample: Sample) -> list[Any]:
    """Return the shape of each operator's first tensor in a real run."""
    from graphnet_datasets.frameworks.paddle.plan import Plan
    from graphnet_datasets.frameworks.paddle.tensors import make_inputs

    shapes: list[Any] = [None] * sample.num_ops

    def observe(position: int, result: Any) -> Any:
        first = result[0] if isinstance(result, list | tuple) else result
        if isinstance(first, paddle.Tensor):
            shapes[position] = (tuple(first.shape), str(first.dtype).rpartition(".")[2])
        return result

    with paddle.no_grad():
        Plan(sample).observe(list(make_inputs(sample).values()), observe)
    return shapes


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("PaddleNLP/utc-nano", 1.0),
        ("PaddleX/YOLOv3-DarkNet53/subgraph_2", 1.0),
        ("PaddleScience/euler_beam/subgraph_1", 1.0),
        ("PaddleX/PicoDet_layout_1x/subgraph_0", 0.6),
    ],
)
def test_inferred_shapes_are_those_of_a_run(
    upstream_samples: Path, name: str, share: float
) -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    sample = read(upstream_samples / "paddle_samples" / name)
    known = 0
    for inferred, real in zip(propagate(sample), run_shapes(sample), strict=True):
        if inferred is None or real is None or inferred[0].shape is None:
            continue
        assert (inferred[0].shape, inferred[0].dtype) == real
        known += 1
    assert known >= share * sample.num_ops


def test_shapes_follow_the_sizes_of_symbols() -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    sample = Sample(
        "test/dynamic",
        "paddle",
        "other",
        (Input("input", Value("float32", ("s0", 4))),),
        (Op(f"{CORE}concat", (ListArg((Ref(0), Ref(0))), 0)),),
        Ref(1),
        symbols=(Symbol("s0", 3),),
    )
    assert propagate(sample) == ((Value("float32", (6, 4)),),)
    assert propagate(sample, {"s0": 5}) == ((Value("float32", (10, 4)),),)
    assert paddle.in_dynamic_mode()


def test_an_operator_that_cannot_be_inferred_leaves_the_rest_known() -> None:
    from graphnet_datasets.frameworks.paddle.shapes import measure_footprint, propagate

    value = Value("float32", (2, 3))
    sample = Sample(
        "test/unknown",
        "paddle",
        "other",
        (Input("input", value),),
        (
            Op(f"{CORE}matmul", (Ref(0), Ref(0), False, False), (), (value,)),
            Op(f"{CORE}abs", (Ref(1),)),
            Op(f"{CORE}exp", (Ref(0),)),
        ),
        (Ref(2), Ref(3)),
    )
    assert propagate(sample) == (None, None, (value,))
    footprint = measure_footprint(sample)
    assert footprint.results == ((value,), None, (value,))
    assert (footprint.input_bytes, footprint.peak_bytes, footprint.total_bytes) == (24, 48, 48)


def test_a_size_that_depends_on_values_is_unknown() -> None:
    from graphnet_datasets.frameworks.paddle.shapes import propagate

    sample = Sample(
        "test/nonzero",
        "paddle",
        "other",
        (Input("input", Value("float32", (2, 3))),),
        (Op(f"{CORE}nonzero", (Ref(0),)), Op(f"{CORE}topk", (Ref(0), 2, 1, True, True))),
        Ref(1),
    )
    assert propagate(sample) == (
        (Value("int64", None),),
        (Value("float32", (2, 2)), Value("int64", (2, 2))),
    )
