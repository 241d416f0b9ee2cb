"""Boxes among the inputs: found by what consumes them, drawn with their corners in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet_datasets.inputs import Mode, make_array
from graphnet_datasets.inputs.boxes import Boxes, find_boxes, order_corners
from graphnet_datasets.inputs.encoding import decode
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref, SliceArg
from graphnet_datasets.sample.vocabulary import Framework

ALL = SliceArg(None, None, None)
RECORDED = Statistics(384.0, 275.0, -362.0, 1242.0)


def boxes(*shape: int, dtype: str = "float32", **more: Any) -> Input:
    return Input("input", Value(dtype, shape), "boxes", statistics=RECORDED, **more)


def sample_of(inputs: tuple[Input, ...], ops: list[Op], framework: Framework = "torch") -> Sample:
    return Sample("example/boxes", framework, "cv", inputs, tuple(ops), Ref(0))


def columns(name: str, of: int, *places: tuple) -> list[Op]:
    return [Op(name, (Ref(of), *place)) for place in places]


def paddle_slice(of: int, column: int) -> Op:
    one = ListArg((1,))
    return Op(
        "paddle._C_ops.slice", (Ref(of), one, ListArg((column,)), ListArg((column + 1,)), one, one)
    )


WIDTHS: dict[str, list[Op]] = {
    "index": [
        *columns("operator.getitem", 0, ((ALL, 2),), ((ALL, 0),)),
        Op("operator.sub", (Ref(1), Ref(2))),
    ],
    "negative index behind an ellipsis": [
        *columns("operator.getitem", 0, ((Ellipsis, -1),), ((Ellipsis, 1),)),
        Op("operator.sub", (Ref(1), Ref(2))),
    ],
    "slices of both": [
        *columns("operator.getitem", 0, ((ALL, SliceArg(2, None, None)),)),
        *columns("operator.getitem", 0, ((ALL, SliceArg(None, 2, None)),)),
        Op("torch.sub", (Ref(1), Ref(2))),
    ],
    "unbind": [
        Op("torch.Tensor.unbind", (Ref(0), -1)),
        *columns("operator.getitem", 1, (3,), (1,)),
        Op("torch.ops.aten.sub.Tensor", (Ref(2), Ref(3))),
    ],
    "narrow after a change of scale": [
        Op("torch.mul", (Ref(0), 0.5)),
        Op("torch.narrow", (Ref(1), 1, 2, 2)),
        Op("torch.narrow", (Ref(1), 1, 0, 2)),
        Op("torch.sub", (Ref(2), Ref(3))),
    ],
    "in ATen, behind an index": [
        Op("torch.ops.aten.index_select.default", (Ref(0), 0, Ref(0))),
        Op("torch.ops.aten.slice.Tensor", (Ref(1), 1, 2, 2**63 - 1)),
        Op("torch.ops.aten.slice.Tensor", (Ref(1), 1, 0, 2)),
        Op("torch.ops.aten.sub.Tensor", (Ref(2), Ref(3))),
    ],
    "chunk": [
        Op("torch.chunk", (Ref(0), 2, -1), results=(Value("float32", (8, 2)),) * 2),
        *columns("operator.getitem", 1, (1,), (0,)),
        Op("torch.sub", (Ref(2), Ref(3))),
    ],
    "intersection": [
        *columns("operator.getitem", 0, ((ALL, None, SliceArg(2, None, None)),)),
        *columns("operator.getitem", 0, ((ALL, None, SliceArg(None, 2, None)),)),
        Op("torch.min", (Ref(1), Ref(1))),
        Op("torch.max", (Ref(2), Ref(2))),
        Op("torch.sub", (Ref(3), Ref(4))),
    ],
}


@pytest.mark.parametrize("way", list(WIDTHS))
def test_boxes_are_found_by_their_sides(way: str) -> None:
    assert find_boxes(sample_of((boxes(8, 4),), WIDTHS[way])) == {0: Boxes(0)}


def test_boxes_are_found_by_their_sides_in_paddle() -> None:
    gather = Op("paddle._C_ops.gather", (Ref(0), Ref(1)))
    subtract = Op("paddle._C_ops.subtract", (Ref(3), Ref(4)))
    rows = Input("input", Value("int64", (8,)))
    ops = [gather, paddle_slice(2, 3), paddle_slice(2, 1), subtract]
    assert find_boxes(sample_of((boxes(8, 4), rows), ops, "paddle")) == {0: Boxes(0)}


@pytest.mark.parametrize(
    ("end", "start"), [(1, 0), (0, 2), (3, 0), (3, 2)], ids=lambda column: f"column {column}"
)
def test_other_differences_of_columns_are_no_sides(end: int, start: int) -> None:
    ops = [
        *columns("operator.getitem", 0, ((ALL, end),), ((ALL, start),)),
        Op("operator.sub", (Ref(1), Ref(2))),
    ]
    assert not find_boxes(sample_of((boxes(8, 4),), ops))


def test_rows_of_four_that_are_cut_along_another_axis_are_no_boxes() -> None:
    ops = [
        *columns("torch.narrow", 0, (0, 2, 2), (0, 0, 2)),
        Op("torch.sub", (Ref(1), Ref(2))),
    ]
    assert not find_boxes(sample_of((boxes(4, 4),), ops))


def test_boxes_are_found_by_operators_that_take_them() -> None:
    features = Input("input", Value("float32", (3, 2, 8, 8)))
    align = Op("torch.ops.torchvision.roi_align.default", (Ref(0), Ref(1), 0.25, 7, 7))
    sample = sample_of((features, boxes(12, 5)), [align])
    assert find_boxes(sample) == {1: Boxes(1, 3)}
    drawn = make_array(sample, 1)
    assert drawn[:, 0].tolist() == sorted([0.0, 1.0, 2.0] * 4)
    assert (drawn[:, 3:] > drawn[:, 1:3]).all()
    spread = Op("paddle._C_ops.distribute_fpn_proposals", (Ref(2), None, 2, 5, 4, 224, False))
    both = Op("paddle._C_ops.concat", (ListArg((Ref(0), Ref(1))), 0))
    sample = sample_of((boxes(8, 4), boxes(9, 4)), [both, spread], "paddle")
    assert find_boxes(sample) == {0: Boxes(0), 1: Boxes(0)}
    iou = Op("torchvision.ops.box_iou", (Ref(0), Ref(1)))
    assert len(find_boxes(sample_of((boxes(8, 4), boxes(9, 4)), [iou]))) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["replay", "fresh", "probe"])
def test_a_drawn_box_begins_before_it_ends(dtype: str, mode: Mode) -> None:
    sample = sample_of((boxes(5000, 4, dtype=dtype),), WIDTHS["index"])
    for seed in range(3):
        drawn = decode(make_array(sample, 0, seed, mode), dtype)
        assert (drawn[:, 2:] - drawn[:, :2]).min() > 275 / 20
        assert np.mean(drawn) == pytest.approx(384, abs=15)
        assert np.std(drawn) == pytest.approx(275, rel=0.05)
        largest = 1248 if dtype == "bfloat16" else 1242
        assert -largest < -364 <= drawn.min() < drawn.max() <= largest


def test_only_places_change_where_the_coordinates_are_far_apart() -> None:
    plain = make_array(sample_of((boxes(300, 4),), []), 0)
    ordered = make_array(sample_of((boxes(300, 4),), WIDTHS["index"]), 0)
    apart = np.abs(plain[:, 2:] - plain[:, :2]).min(axis=1) > 275 / 16
    assert apart.mean() > 0.8
    assert np.array_equal(np.sort(plain[apart]), np.sort(ordered[apart]))


def test_stored_boxes_stay_in_order_in_another_call() -> None:
    stored = np.array([[10, 10, 10.5, 300], [0, 0, 0, 0], [5, 280, 290, 281]], np.float32)
    recorded = boxes(3, 4, data=stored.astype("<f4").tobytes())
    sample = sample_of((recorded,), WIDTHS["index"])
    assert np.array_equal(make_array(sample, 0), stored)
    for seed in range(50):
        drawn = make_array(sample, 0, seed, "fresh")
        assert (drawn[:, 2:] >= drawn[:, :2]).all()


def test_constants_are_unchanged() -> None:
    held = np.full((3, 4), 7.0)
    order_corners(held, Boxes(0), 0.0, 7.0)
    assert (held == 7).all()


def test_a_cast_and_a_clip_keep_the_columns() -> None:
    to = Op("torch.Tensor.to", (Ref(0), Named("dtype", "float32")))
    clip = Op("torch.clamp", (Ref(1), 0, 512))
    ops = [
        to,
        clip,
        *columns("torch.Tensor.select", 2, (1, 2), (1, 0)),
        Op("torch.sub", (Ref(3), Ref(4))),
    ]
    assert find_boxes(sample_of((boxes(8, 4),), ops)) == {0: Boxes(0)}


def test_coordinates_at_the_limits_of_a_format_and_short_axes_are_put_up_with() -> None:
    largest = np.finfo(np.float32).max
    held = np.array([[largest, 1, -largest, 1]], np.float32)
    order_corners(held, Boxes(0), 16.0, 1e300)
    assert held.tolist() == [[-largest, 1, largest, 2]]
    short = np.array([[3.0, 2.0, 1.0]])
    order_corners(short, Boxes(0), 1.0, np.inf)
    assert short.tolist() == [[3, 2, 1]]


def test_boxes_of_whole_numbers_are_in_order_too() -> None:
    """LayoutLM looks up the width and the height of each word's box."""
    box = Input(
        "input", Value("int64", (2, 300, 4)), "box", statistics=Statistics(247.0, 142.0, 0.0, 499.0)
    )
    table = Input("parameter", Value("float32", (500, 8)), "table")
    ops = [
        *columns("operator.getitem", 0, ((ALL, ALL, 3),), ((ALL, ALL, 1),)),
        Op("operator.sub", (Ref(2), Ref(3))),
        Op("torch.nn.functional.embedding", (Ref(4), Ref(1))),
    ]
    sample = sample_of((box, table), ops)
    assert find_boxes(sample) == {0: Boxes(0)}
    for seed in range(10):
        drawn = make_array(sample, 0, seed)
        assert (drawn[..., 2:] >= drawn[..., :2]).all()
        assert drawn.min() >= 0 and drawn.max() <= 499
