"""Pictures of graphs: nothing is lost in folding, nothing overlaps, equal graphs look equal."""

from __future__ import annotations

import dataclasses
import itertools
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from graphnet_datasets.report import draw_graph
from graphnet_datasets.report.folding import fold
from graphnet_datasets.report.layered import place
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
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
def test_boxes_do_not_overlap_and_lie_below_what_they_take(sample: Sample) -> None:
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


def test_a_picture_is_an_svg_that_says_what_is_in_it() -> None:
    svg = draw_graph(transformer(12), max_boxes=10)
    root = ElementTree.fromstring(svg)  # noqa: S314 - text of our own
    texts = [each.text for each in root.iter(f"{SVG}text")]
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
