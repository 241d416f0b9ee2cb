"""Groups of operators that a fusing compiler would make one kernel of, by rules."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms import Cutter
from graphnet_datasets.transforms.fusing import find_fusible
from graphnet_datasets.transforms.operator_kinds import kind_of
from tests.transforms.test_cut import AUTOCAST, AUTOCAST_ON, small_graphs

X = Input("input", Value("float32", (8, 16)))
WEIGHT = Input("parameter", Value("float32", (4, 16)))


def groups(
    *ops: Op, inputs: tuple[Input, ...] = (X,), outputs: Any = None
) -> list[tuple[int, ...]]:
    outputs = Ref(len(inputs) + len(ops) - 1) if outputs is None else outputs
    return find_fusible(Cutter(Sample("test/whole", "torch", "other", inputs, ops, outputs)))


def test_a_chain_of_pointwise_operators_is_one_kernel() -> None:
    assert groups(
        Op("torch.exp", (Ref(0),)), Op("torch.relu", (Ref(1),)), Op("torch.add", (Ref(2), Ref(1)))
    ) == [(0, 1, 2)]


def test_a_product_has_an_epilogue_and_no_prologue() -> None:
    assert groups(
        Op("torch.exp", (Ref(0),)),
        Op("torch.abs", (Ref(2),)),
        Op("torch.nn.functional.linear", (Ref(3), Ref(1))),
        Op("torch.relu", (Ref(4),)),
        Op("torch.nn.functional.gelu", (Ref(5),)),
        inputs=(X, WEIGHT),
    ) == [(0, 1), (2, 3, 4)]


def test_a_group_has_one_product() -> None:
    second = Input("parameter", Value("float32", (4, 4)))
    assert groups(
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.relu", (Ref(3),)),
        Op("torch.nn.functional.linear", (Ref(4), Ref(2))),
        Op("torch.relu", (Ref(5),)),
        inputs=(X, WEIGHT, second),
    ) == [(0, 1), (2, 3)]


def test_a_normalisation_written_out_is_one_kernel() -> None:
    assert groups(
        Op("torch.Tensor.pow", (Ref(0), 2)),
        Op("torch.Tensor.mean", (Ref(1), -1), (("keepdim", True),)),
        Op("torch.Tensor.add", (Ref(2), 1e-5)),
        Op("torch.rsqrt", (Ref(3),)),
        Op("torch.Tensor.mul", (Ref(0), Ref(4))),
    ) == [(0, 1, 2, 3, 4)]


def test_no_operator_lies_between_two_of_a_group() -> None:
    """The sort takes of the first operator and gives to the last."""
    assert groups(
        Op("torch.exp", (Ref(0),)),
        Op("torch.relu", (Ref(1),)),
        Op("torch.cumsum", (Ref(1), 0)),
        Op("torch.roll", (Ref(3), 1)),
        Op("torch.add", (Ref(2), Ref(4))),
    ) == [(0, 1, 2)]


def test_a_batch_norm_with_recorded_statistics_is_an_epilogue() -> None:
    image = Input("input", Value("float32", (2, 3, 8, 8)))
    kernel = Input("parameter", Value("float32", (3, 3, 1, 1)))
    channel = Input("buffer", Value("float32", (3,)))
    training = [False, True]
    found = [
        groups(
            Op("torch.conv2d", (Ref(0), Ref(1))),
            Op("torch.nn.functional.batch_norm", (Ref(4), Ref(2), Ref(3), None, None, mode)),
            Op("torch.relu", (Ref(5),)),
            inputs=(image, kernel, channel, channel),
        )
        for mode in training
    ]
    assert found == [[(0, 1, 2)], [(1, 2)]]


def test_views_alone_are_no_kernel_and_regions_are_borders() -> None:
    assert groups(Op("torch.Tensor.view", (Ref(0), -1)), Op("torch.Tensor.t", (Ref(1),))) == []
    assert groups(
        Op("torch.exp", (Ref(0),)),
        Op(f"{AUTOCAST}._enter_autocast", AUTOCAST_ON),
        Op("torch.relu", (Ref(1),)),
        Op("torch.abs", (Ref(3),)),
        Op(f"{AUTOCAST}._exit_autocast", (Ref(2),)),
        Op("torch.neg", (Ref(4),)),
        outputs=Ref(6),
    ) == [(2, 3)]


@pytest.mark.parametrize("framework", ["torch", pytest.param("paddle", marks=pytest.mark.paddle)])
def test_groups_of_embedded_graphs_are_disjoint_and_can_be_cut_out(framework: str) -> None:
    samples = small_graphs(framework, 60)[::12]
    num_groups = 0
    for sample in samples:
        cutter = Cutter(sample)
        found = find_fusible(cutter)
        positions = [position for group in found for position in group]
        assert len(set(positions)) == len(positions)
        parts = [cutter.cut(group) for group in found]
        num_groups += len(parts)
        for group, part in zip(found, parts, strict=True):
            assert set(group) <= set(part.ops)
        if parts:
            materialize(parts[0].sample, allow_unchecked_operators=True)
            make_inputs(parts[0].sample)
    assert num_groups >= len(samples) / 2  # graphs of single layers may have none


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("torch.Tensor.add_", "pointwise"),
        ("torch.ops.aten.mul.Tensor", "pointwise"),
        ("paddle._C_ops.conv2d", "product"),
        ("torch.nn.functional.softmax", "reduction"),
        ("operator.getitem", "view"),
        ("torch.arange", "source"),
        ("torch.sort", "opaque"),
        ("torch.Tensor.__getitem__", "view"),
    ],
)
def test_kinds(target: str, kind: str) -> None:
    assert kind_of(target) == kind
