"""Encoder layers and grouped products are checked operators: what does not fit is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.directory import read_directory
from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.frameworks.torch.building.unchecked import check_operators
from graphnet_datasets.frameworks.torch.shapes import measure_footprint
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

from .building import build

LAYER, PRODUCTS = "torch._transformer_encoder_layer_fwd", "torch._grouped_mm"
UNIT = Statistics(0.0, 1.0, -3.0, 3.0)
SHAPES: dict[str, tuple[int, ...]] = {
    "src": (2, 3, 8), "qkv_weight": (24, 8), "qkv_bias": (24,), "proj_weight": (8, 8),
    "proj_bias": (8,), "norm_weight_1": (8,), "norm_bias_1": (8,), "norm_weight_2": (8,),
    "norm_bias_2": (8,), "ffn_weight_1": (16, 8), "ffn_bias_1": (16,), "ffn_weight_2": (8, 16),
    "ffn_bias_2": (8,),
}  # fmt: skip
OPERANDS = tuple(SHAPES)


def tensor(shape: tuple[int, ...], dtype: Any = "float32") -> Input:
    return Input("input", Value(dtype, shape), statistics=UNIT)


def encoder(
    target: str = LAYER,
    *,
    heads: Any = 2,
    mask: Input | None = None,
    kind: Any = None,
    **wrong: Input,
) -> Sample:
    inputs = [wrong.get(name, tensor(shape)) for name, shape in SHAPES.items()]
    refs = dict(zip(OPERANDS, map(Ref, range(len(inputs))), strict=True))
    weights = [refs[name] for name in OPERANDS[1:]]
    args = (refs["src"], 8, heads, *weights[:4], True, False, 1e-5, *weights[4:])
    masked = (Ref(len(inputs)), kind) if mask else (None, None)
    return build(Op(target, (*args, *masked)), inputs=(*inputs, *([mask] if mask else [])))


def grouped(left: Input, right: Input, offsets: Input | None, target: str = PRODUCTS) -> Sample:
    inputs = (left, right, *([offsets] if offsets else []))
    kwargs = (("offs", Ref(2)),) if offsets else ()
    return build(Op(target, (Ref(0), Ref(1)), kwargs), inputs=inputs)


@pytest.mark.parametrize(
    "sample",
    [
        encoder(),
        encoder("torch.ops.aten._transformer_encoder_layer_fwd.default"),
        encoder(mask=tensor((3, 3), "bool"), kind=0),
        encoder(mask=tensor((2, 3), "bool"), kind=1),
    ],
)
def test_an_encoder_layer_that_fits_runs(sample: Sample) -> None:
    assert materialize(sample)(**make_inputs(sample)).shape == (2, 3, 8)


def shorter(name: str) -> Input:
    return tensor((SHAPES[name][0] - 1, *SHAPES[name][1:]))


@pytest.mark.parametrize(
    "sample",
    [
        *(encoder(**{name: shorter(name)}) for name in OPERANDS[1:]),
        *(encoder(**{name: tensor(SHAPES[name], "int8")}) for name in OPERANDS),
        *(encoder(**{name: tensor(SHAPES[name], "float64")}) for name in OPERANDS),
        encoder(src=tensor((3, 8))), encoder(src=tensor((0, 3, 8))),
        encoder(heads=0), encoder(heads=3), encoder(heads=-2), encoder(heads=2.0),
        encoder(mask=tensor((3, 3), "bool"), kind=2), encoder(mask=tensor((3, 3), "int8"), kind=0),
        encoder(mask=tensor((2, 2), "bool"), kind=1), encoder(mask=tensor((3, 3), "bool"), kind=7),
    ],
)  # fmt: skip
def test_an_encoder_layer_that_does_not_fit_is_refused(sample: Sample) -> None:
    """The kernel reads a bias of 24 bytes as 24 floats, for one."""
    with pytest.raises(MaterializeError, match=r"Op 0 \(`torch\._transformer_encoder_layer_fwd`"):
        materialize(sample)


def test_arguments_of_an_encoder_layer_are_all_there() -> None:
    [op] = encoder().ops
    sample = dataclasses.replace(encoder(), ops=(dataclasses.replace(op, args=op.args[:7]),))
    with pytest.raises(MaterializeError, match="Expected the arguments of an encoder layer"):
        materialize(sample)


def offsets(*ends: int) -> Input:
    data = b"".join(end.to_bytes(4, "little", signed=True) for end in ends)
    return Input("constant", Value("int32", (len(ends),)), data=data)


@pytest.mark.parametrize(
    ("sample", "shape"),
    [
        (grouped(tensor((8, 16)), tensor((2, 16, 8)), offsets(3, 8)), (8, 8)),
        (grouped(tensor((8, 16)), tensor((2, 16, 8)), offsets(-7, 10**9)), (8, 8)),
        (grouped(tensor((2, 8, 16)), tensor((2, 16, 8)), None), (2, 8, 8)),
        (grouped(tensor((8, 8)), tensor((8, 16)), offsets(3, 8)), (2, 8, 16)),
        (grouped(tensor((8, 16)), tensor((2, 16, 8)), offsets(3, 8),
                 "torch.nn.functional.grouped_mm"), (8, 8)),
    ],
)  # fmt: skip
def test_grouped_products_that_fit_run(sample: Sample, shape: tuple[int, ...]) -> None:
    """Groups that begin or end beyond the matrix are cut off by the kernel, or its own error."""
    module = materialize(sample)
    try:
        assert module(**make_inputs(sample)).shape == shape
    except RuntimeError as error:
        assert "Expected" in str(error) or "size" in str(error) or "shape" in str(error)


@pytest.mark.parametrize(
    "sample",
    [
        grouped(tensor((8, 16)), tensor((2, 16, 8)), None),
        grouped(tensor((8, 16)), tensor((2, 16, 8)), offsets(1, 3, 8)),
        grouped(tensor((8, 16)), tensor((2, 16, 8)), tensor((2,), "int64")),
        grouped(tensor((8, 16)), tensor((2, 16, 8)), tensor((2, 1), "int32")),
        grouped(tensor((8, 16)), tensor((2, 15, 8)), offsets(3, 8)),
        grouped(tensor((8, 16)), tensor((2, 16, 8), "float64"), offsets(3, 8)),
        grouped(tensor((8, 16), "int32"), tensor((2, 16, 8), "int32"), offsets(3, 8)),
        grouped(tensor((2, 8, 16)), tensor((3, 16, 8)), None),
        grouped(tensor((2, 8, 16)), tensor((2, 16, 8)), offsets(3, 8)),
        grouped(tensor((16,)), tensor((2, 16, 8)), offsets(3, 8)),
    ],
)
def test_grouped_products_that_do_not_fit_are_refused(sample: Sample) -> None:
    with pytest.raises(MaterializeError, match=r"Op 0 \(`torch\._grouped_mm`\)"):
        materialize(sample)


def folders(upstream_samples: Path) -> Iterator[Path]:
    for path in sorted((upstream_samples / "samples").rglob("model.py")):
        yield path.parent


@pytest.mark.slow
def test_no_graph_of_upstream_is_refused_unasked(upstream_samples: Path) -> None:
    for folder in folders(upstream_samples):
        [sample] = read_directory(folder)
        check_operators(sample, allow_unchecked_operators=False)
        if any("repeat_interleave" in op.target or "pad" in op.target for op in sample.ops):
            assert not measure_footprint(sample).unchecked, folder
