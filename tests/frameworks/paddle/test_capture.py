"""Capture of live layers: equal outputs, every kind of argument and output, and what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.paddle.printer import print_source
from graphnet_datasets.frameworks.paddle.source import parse_graph
from graphnet_datasets.sample import Sample, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg

from .installed import paddle

pytestmark = pytest.mark.paddle


def leaves(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        return [leaf for item in structure.values() for leaf in leaves(item)]
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in leaves(item)]
    return [structure]


def bits(structure: Any) -> list[Any]:
    return [
        (leaf.numpy().tobytes(), tuple(leaf.shape), str(leaf.dtype))
        if isinstance(leaf, paddle.Tensor)
        else leaf
        for leaf in leaves(structure)
    ]


def capture(layer: Any, *args: Any, **options: Any) -> tuple[Sample, Any]:
    """Capture `layer(*args)` and compare what the sample computes with what the layer does."""
    from graphnet_datasets.frameworks.paddle.extract import extract
    from graphnet_datasets.frameworks.paddle.materialize import materialize

    layer.eval()
    with paddle.no_grad():
        expected = bits(layer(*args))
        wrapped = extract(name="test/layer", **options)(layer)
        outputs = wrapped(*args)
    (sample,) = wrapped.samples
    held = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    data = iter([leaf for leaf in leaves(args) if isinstance(leaf, paddle.Tensor)])
    values = [
        next(data) if each.role == "input" else held[each.source_name] for each in sample.inputs
    ]
    with paddle.no_grad():
        assert bits(materialize(sample)(*values)) == expected
    names, ops, structure = parse_graph(print_source(sample))
    assert names == sample.input_names
    assert ops == tuple(dataclasses.replace(op, module="") for op in sample.ops)
    assert structure == sample.outputs
    return sample, outputs


def resnet() -> tuple[Any, ...]:
    return paddle.vision.models.resnet18(), paddle.ones([1, 3, 64, 64])


def mobilenet() -> tuple[Any, ...]:
    return paddle.vision.models.mobilenet_v2(scale=0.25), paddle.ones([1, 3, 64, 64])


def googlenet() -> tuple[Any, ...]:
    return paddle.vision.models.googlenet(), paddle.ones([1, 3, 224, 224])


def transformer() -> tuple[Any, ...]:
    layer = paddle.nn.Transformer(32, 4, 1, 1, 64)
    return layer, paddle.rand([2, 7, 32]), paddle.rand([2, 5, 32])


def lstm() -> tuple[Any, ...]:
    return paddle.nn.LSTM(8, 16, 2, direction="bidirect"), paddle.rand([2, 5, 8])


@pytest.mark.parametrize("make", [resnet, mobilenet, googlenet, transformer, lstm])
def test_real_layers_give_equal_outputs(make: Callable[[], tuple[Any, ...]]) -> None:
    layer, *args = make()
    sample, _ = capture(layer, *args)
    assert sample.framework == "paddle"
    assert sample.provenance.capture == "to_static"
    assert sample.provenance.mode == "eval"
    assert sample.num_params > 0
    assert all(op.results is not None for op in sample.ops if "reshape" not in op.target)


class Everything(paddle.nn.Layer):
    """What PIR spells in its own way: slices, masks, assignment, splits, constants, shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = paddle.nn.BatchNorm2D(4)
        self.register_buffer("mask", paddle.to_tensor([True, False, True, True]))

    def forward(self, x: Any, pairs: Any, factor: float = 2.0) -> Any:
        y = self.norm(x)
        first, second = pairs["both"]
        z = paddle.where(self.mask.reshape([1, 4, 1, 1]), y * factor, y)
        z[:, 0] = 0.5
        parts = paddle.split(z, [1, 3], axis=1)
        chosen = z[z > 0.4]
        table = paddle.to_tensor([1.5, 2.5, 3.5, 4.5])
        flat = paddle.reshape(z, [paddle.shape(z)[0], -1])
        return {
            "parts": parts,
            "pair": (first + second, None),
            "chosen": chosen.sum(),
            "table": table + z.mean(axis=[0, 2, 3]),
            "flat": flat.astype("float16"),
            "number": 3,
        }


def test_program_spellings_are_translated() -> None:
    first = paddle.arange(6, dtype="int64").reshape([2, 3])
    pairs = {"both": [first, paddle.ones([2, 3], "int64")]}
    sample, outputs = capture(Everything(), paddle.rand([2, 4, 3, 3]), pairs, 3.0)
    roles = [each.role for each in sample.inputs]
    assert roles.count("input") == 3
    assert roles.count("buffer") == 3  # the mask, the running mean and variance
    assert isinstance(sample.outputs, DictArg)
    structure = dict(sample.outputs.items)
    assert isinstance(structure["parts"], ListArg)
    assert structure["pair"][1] is None  # type: ignore[index]
    assert structure["number"] == 3
    assert list(outputs) == [key for key, _ in sample.outputs.items]
    stored = {each.source_name: each.data for each in sample.inputs if each.data is not None}
    assert stored["mask"] == b"\x01\x00\x01\x01"


def test_statistics_have_four_digits_and_weights_their_paths() -> None:
    layer = paddle.nn.Linear(2, 2)
    layer.weight.set_value(paddle.to_tensor([[0.123456, 1.0], [-1.0, 0.5]]))
    sample, _ = capture(layer, paddle.to_tensor([[1.0, 3.0]]))
    weight = next(each for each in sample.inputs if each.source_name == "weight")
    assert weight.role == "parameter"
    assert weight.statistics is not None
    assert (weight.statistics.min, weight.statistics.mean) == (-1.0, 0.1559)
    data = next(each for each in sample.inputs if each.role == "input")
    assert data.value == Value("float32", (1, 2))
    assert sample.ops[0].module == "Linear"


def test_the_batch_becomes_a_symbol() -> None:
    layer = paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.Flatten())
    sample, _ = capture(layer, paddle.rand([2, 3, 8, 8]), dynamic=True)
    assert [(symbol.name, symbol.hint) for symbol in sample.symbols] == [("s0", 2)]
    assert sample.inputs[-1].value.shape == ("s0", 3, 8, 8)
    assert sample.ops[-1].results == (Value("float32", ("s0", 144)),)


def test_a_class_is_decorated_and_captures_once() -> None:
    from graphnet_datasets.frameworks.paddle.extract import extract

    @extract(name="test/double")
    class Double(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return x * 2

    layer = Double()
    assert layer.samples == []
    assert layer(paddle.ones([2])).tolist() == [2.0, 2.0]
    assert layer(paddle.ones([3])).tolist() == [2.0, 2.0, 2.0]
    assert [sample.inputs[0].value.shape for sample in layer.samples] == [(2,)]
    assert Double.__name__ == "Double"


class Branches(paddle.nn.Layer):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            return x + 1
        return x - 1


class Fails(paddle.nn.Layer):
    def forward(self, x: Any) -> Any:
        return paddle.matmul(x, paddle.ones([7, 7]))


def test_models_beyond_one_graph_are_refused() -> None:
    from graphnet_datasets.frameworks.paddle.extract import extract

    with pytest.raises(CaptureError) as caught:
        extract(name="test/branches")(Branches())(paddle.ones([2]))
    assert str(caught.value) == (
        "`test/branches` branches on the values of tensors (`pd_op.if`), which one graph cannot "
        "represent. Capture the branches as separate modules."
    )
    with pytest.raises(CaptureError, match=r"`test/fails` cannot be traced into one program"):
        extract(name="test/fails")(Fails())(paddle.ones([2, 2]))
    with pytest.raises(CaptureError) as caught:
        extract(name="test/function")(len)
    assert str(caught.value) == (
        "`extract` accepts a `paddle.nn.Layer`, a subclass of it, or a Python function, not a "
        "`builtin_function_or_method`. Call it in a function and decorate the function."
    )


def test_a_layer_that_was_made_static_is_captured() -> None:
    from graphnet_datasets.frameworks.paddle.extract import extract

    static: Any = paddle.jit.to_static(paddle.nn.Linear(4, 4))
    layer = paddle.nn.Sequential(static, paddle.nn.ReLU())
    forward = static.forward
    wrapped = extract(name="test/static")(layer)
    wrapped(paddle.ones([2, 4]))
    assert static.forward is forward
    assert [op.target.rpartition(".")[2] for op in wrapped.samples[0].ops] == [
        "matmul", "add", "relu",
    ]  # fmt: skip
