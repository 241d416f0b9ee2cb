"""Pictures of graphs: nothing is lost in folding, nothing overlaps, equal graphs look equal."""

from __future__ import annotations

import dataclasses
import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.report import draw_graph
from graphnet_datasets.report.folding import fold
from graphnet_datasets.report.layered import place
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.selection import select_rows
from tests.strategies import runnable_samples

VALUE = Value("float32", (2, 4))
SVG = "{http://www.w3.org/2000/svg}"


def transformer(num_layers: int, *, has_modules: bool = True) -> Sample:
    """Return blocks of a product, an activation and a residual addition, with a stem and a head."""
    ops = [Op("torch.nn.functional.embedding", (Ref(0), Ref(1)), (), (VALUE,), "model.stem")]
    value = 3
    for layer in range(num_layers):
        path = f"model.layers.{layer}"
        ops += [
            Op("torch.nn.functional.linear", (Ref(value), Ref(2)), (), (VALUE,), f"{path}.up"),
            Op("torch.nn.functional.gelu", (Ref(value + 1),), (), (VALUE,), f"{path}.act"),
            Op("operator.add", (Ref(value + 2), Ref(value)), (), (VALUE,), path),
        ]
        value += 3
    ops.append(Op("torch.nn.functional.linear", (Ref(value), Ref(2)), (), (VALUE,), "model.head"))
    if not has_modules:
        ops = [dataclasses.replace(op, module="") for op in ops]
    inputs = (
        Input("input", Value("int64", (2,))),
        Input("parameter", Value("float32", (10, 4))),
        Input("parameter", Value("float32", (4, 4))),
    )
    return Sample("test/transformer", "torch", "nlp", inputs, tuple(ops), (Ref(value + 1),))


def test_repeated_modules_are_one_box() -> None:
    folded = fold(transformer(12), max_boxes=10)
    assert [(box.title, box.times, box.num_ops) for box in folded.boxes] == [
        ("input_0", 1, 0),
        ("embedding", 1, 1),
        ("model.layers.0-11", 12, 36),
        ("linear", 1, 1),
        ("output", 1, 0),
    ]
    assert folded.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert folded.boxes[2].detail == "linear, add, gelu"
    assert folded.boxes[2].shape == "2x4"


def test_repeated_blocks_are_found_without_modules() -> None:
    folded = fold(transformer(12, has_modules=False), max_boxes=10)
    assert [(box.title, box.times) for box in folded.boxes[1:-1]] == [
        ("embedding", 1),
        ("3 operators", 12),
        ("linear", 1),
    ]


def test_a_small_graph_shows_every_operator() -> None:
    folded = fold(transformer(2))
    assert [box.title for box in folded.boxes] == [
        *("input_0", "embedding", "linear", "gelu", "add", "linear", "gelu", "add", "linear"),
        "output",
    ]
    assert (1, 4) in folded.edges  # the residual


@pytest.mark.parametrize("max_boxes", [4, 7, 40])
@settings(max_examples=25)
@given(sample=runnable_samples(max_ops=20))
def test_every_operator_is_in_one_box_and_edges_go_forward(max_boxes: int, sample: Sample) -> None:
    folded = fold(sample, max_boxes)
    inner = [box for box in folded.boxes if box.kind not in ("input", "output")]
    assert [position for box in inner for position in range(box.start, box.stop)] == list(
        range(sample.num_ops)
    )
    assert len(inner) <= max_boxes
    assert all(source < target for source, target in folded.edges)
    assert all(box.num_ops % box.times == 0 for box in inner)


@settings(max_examples=25)
@given(sample=runnable_samples(max_ops=20))
def test_boxes_do_not_overlap_and_are_below_their_operands(sample: Sample) -> None:
    folded = fold(sample)
    widths = [30.0 + 10 * index for index in range(len(folded.boxes))]
    layout = place(widths, folded.edges)
    for source, target in folded.edges:
        assert layout.layers[source] < layout.layers[target]
    spans: dict[int, list[tuple[float, float]]] = {}
    for layer, centre, width in zip(layout.layers, layout.centres, widths, strict=True):
        spans.setdefault(layer, []).append((centre - width / 2, centre + width / 2))
    for in_layer in spans.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(in_layer)):
            assert end <= start
        assert min(in_layer)[0] >= 0 and max(in_layer)[1] <= layout.width


def test_a_picture_is_an_svg_with_a_description() -> None:
    svg = draw_graph(transformer(12), max_boxes=10)
    root = ElementTree.fromstring(svg)  # noqa: S314 - text of our own
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "test/transformer" in texts
    assert "torch, 38 operators in 3 boxes, 56 parameters" in texts
    assert "model.layers.0-11  x 12" in texts
    assert svg == draw_graph(transformer(12), max_boxes=10)


def test_a_long_chain_is_broken_into_columns() -> None:
    chain = tuple(
        Op("torch.relu" if index % 2 else "torch.exp", (Ref(index),)) for index in range(30)
    )
    sample = Sample("a/chain", "torch", "other", (Input("input", VALUE),), chain, (Ref(30),))
    root = ElementTree.fromstring(draw_graph(sample))  # noqa: S314 - text of our own
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert 0.5 < height / width < 2.5


def layered(blocks: tuple[tuple[str, ...], ...], num_layers: int, num_ends: int = 3) -> Sample:
    """Return layers of equal blocks between single operators; a residual goes around each block."""
    ops: list[Op] = []

    def call(target: str, module: str, *values: int) -> int:
        ops.append(Op(target, tuple(map(Ref, values)), (), (VALUE,), module))
        return len(ops)

    value = 0
    for end in range(num_ends):
        value = call("torch.exp", f"stem.{end}", value)
    for layer in range(num_layers):
        for number, block in enumerate(blocks):
            entry = value
            for step, target in enumerate(block):
                value = call(target, f"model.layers.{layer}.block{number}.{step}", value)
            value = call("operator.add", f"model.layers.{layer}", value, entry)
        # What stands between them makes no two layers neighbours, which one box would hold.
        value = call(
            ("torch.sin", "torch.cos", "torch.tanh")[layer % 3], f"model.mix{layer}", value
        )
    for end in range(num_ends):
        value = call("torch.exp", f"head.{end}", value)
    inputs = (Input("input", VALUE),)
    return Sample("a/layers", "torch", "other", inputs, tuple(ops), (Ref(value),))


BLOCKS = (("torch.relu", "torch.neg", "torch.abs"), ("torch.sigmoid", "torch.relu"))


@pytest.mark.parametrize("max_boxes", range(6, 80, 3))
@pytest.mark.parametrize("num_layers", [2, 5, 7])
def test_equal_layers_are_opened_to_the_same_depth(num_layers: int, max_boxes: int) -> None:
    sample = layered(BLOCKS, num_layers)
    folded = fold(sample, max_boxes)
    cuts = {box.start for box in folded.boxes}
    length = sum(len(block) + 1 for block in BLOCKS) + 1
    if len(cuts) < num_layers:
        return  # so few boxes are cut without regard to modules
    inside = [
        tuple(place for place in range(length - 1) if 3 + layer * length + place in cuts)
        for layer in range(num_layers)
    ]
    assert len(set(inside)) == 1, inside
    assert len([box for box in folded.boxes if box.kind not in ("input", "output")]) <= max_boxes


def points_of(path: str) -> list[tuple[float, float]]:
    """Return points along a path of straight and curved pieces, some pixels apart."""
    points: list[tuple[float, float]] = []
    for command, text in re.findall(r"([MLC])([^MLC]*)", path):
        numbers = [float(number) for number in text.split()]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        if command == "M":
            points += ends
            continue
        start = points[-1]
        for step in range(1, 41):
            t = step / 40
            if command == "L":
                weights = (1 - t, t)
            else:
                weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            controls = (start, *ends)
            points.append(
                (
                    sum(weight * x for weight, (x, _) in zip(weights, controls, strict=True)),
                    sum(weight * y for weight, (_, y) in zip(weights, controls, strict=True)),
                )
            )
    return points


def check_drawing(svg: str) -> None:
    """Check that boxes do not overlap, are in the picture, and are crossed by no edge."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - text of our own
    rects = [element.attrib for element in root.iter(f"{SVG}rect") if "rx" in element.attrib]
    boxes = [
        (float(rect["x"]), float(rect["y"]), float(rect["width"]), float(rect["height"]))
        for rect in rects
        if rect["stroke"] == "#444444" and rect["width"] != "12"
    ]
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for first, second in itertools.combinations(boxes, 2):
        assert (
            first[0] + first[2] <= second[0] or second[0] + second[2] <= first[0]
            or first[1] + first[3] <= second[1] or second[1] + second[3] <= first[1]
        )  # fmt: skip
    for path in (element for element in root.iter(f"{SVG}path") if "marker-end" in element.attrib):
        points = points_of(path.attrib["d"])
        assert points[-1][1] > points[-41][1], "the head of an arrow points down"
        for x, y in points:
            assert 0 <= x <= width and 0 <= y <= height
            for left, top, wide, high in boxes:
                assert not (left + 1 < x < left + wide - 1 and top + 1 < y < top + high - 1), (
                    path.attrib["d"],
                    (left, top, wide, high),
                )


@settings(max_examples=40)
@given(sample=runnable_samples(max_ops=20), max_boxes=st.sampled_from([4, 9, 40]))
def test_no_edge_is_behind_a_box(sample: Sample, max_boxes: int) -> None:
    check_drawing(draw_graph(sample, max_boxes))


@pytest.mark.parametrize("max_boxes", [12, 40, 80])
@pytest.mark.parametrize("num_layers", [1, 3, 9])
def test_no_edge_of_a_layered_graph_is_behind_a_box(num_layers: int, max_boxes: int) -> None:
    check_drawing(draw_graph(layered(BLOCKS, num_layers), max_boxes))


@pytest.mark.parametrize(
    "sample_id",
    [
        "torch/resnet-18",
        "torch/ddpm-unet-small",
        "transformers/bert-tiny",
        "paddle/shufflenet-v2-swish-96",
    ],
)
def test_no_edge_of_a_real_graph_is_behind_a_box(sample_id: str) -> None:
    (row,) = select_rows(sample_id)
    for max_boxes in (15, 40, 120):
        check_drawing(draw_graph(Sample.from_row(row), max_boxes))
