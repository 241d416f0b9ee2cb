"""Inputs as torch tensors: bits, strides, numbers."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks.torch.materialize import materialize
from graphnet_datasets.frameworks.torch.tensors import (
    DTYPES,
    dtype_of,
    make_input,
    make_inputs,
    storage_elements,
    to_tensor,
)
from graphnet_datasets.inputs import make_array
from graphnet_datasets.inputs.arrays import STORAGE
from graphnet_datasets.sample import Input, Statistics, Symbol, Value
from graphnet_datasets.sample.vocabulary import ITEM_SIZE_BYTES

from .building import MATRIX, build

QUANTIZED = {"quint8", "qint8", "qint32"}


def test_every_dtype_of_the_vocabulary_is_a_dtype_of_torch() -> None:
    assert set(DTYPES) == set(ITEM_SIZE_BYTES)
    with pytest.raises(MaterializeError) as caught:
        dtype_of("float7")
    assert str(caught.value).startswith(
        f"`float7` is not a dtype of torch {torch.__version__} (accepted: bool, uint8"
    )


@given(data=st.data(), dtype=st.sampled_from(sorted(set(ITEM_SIZE_BYTES) - QUANTIZED)))
def test_a_tensor_has_the_bits_of_its_array(data: st.DataObject, dtype: str) -> None:
    shape = data.draw(numpy_strategies.array_shapes(min_dims=0, max_dims=3, max_side=4))
    array = data.draw(numpy_strategies.arrays(np.dtype(STORAGE[dtype]), shape))
    tensor = to_tensor(array, dtype)
    assert (tensor.dtype, tuple(tensor.shape)) == (DTYPES[dtype], shape)
    assert tensor.reshape(-1).view(torch.uint8).numpy().tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", sorted(QUANTIZED))
def test_quantized_integers_are_kept(dtype: str) -> None:
    array = np.arange(6).astype(STORAGE[dtype]).reshape(2, 3)
    tensor = to_tensor(array, dtype)
    assert tensor.dtype == DTYPES[dtype]
    assert torch.equal(tensor.int_repr(), torch.from_numpy(array))


def test_a_read_only_array_is_copied() -> None:
    stored = np.frombuffer(np.array([1, 2], np.float32).tobytes(), np.float32)
    to_tensor(stored, "float32").add_(1)
    assert stored.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3)),
        ((3, 4), (1, 3)),
        ((4, 3), (0, 1)),
        ((4, 3), (1, 1)),
        ((2, 2), (5, 2)),
        ((0, 3), (7, 1)),
        ((), ()),
    ],
)
def test_a_recorded_stride_is_restored(shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
    sample = build(inputs=(Input("input", Value("float32", shape, stride)),), outputs=None)
    tensor = make_input(sample, 0)
    assert isinstance(tensor, torch.Tensor)
    assert (tuple(tensor.shape), tensor.stride()) == (shape, stride)
    assert tensor.untyped_storage().nbytes() == 4 * storage_elements(shape, stride)
    if storage_elements(shape, stride) >= tensor.numel():
        assert np.array_equal(tensor.numpy(), make_array(sample, 0))


@pytest.mark.parametrize("stride", [(1,), (-1, 1)])
def test_a_stride_that_does_not_fit_is_refused(stride: tuple[int, ...]) -> None:
    sample = build(inputs=(Input("input", Value("float32", (2, 3), stride)),), outputs=None)
    with pytest.raises(MaterializeError) as caught:
        make_input(sample, 0)
    assert str(caught.value) == (
        f"Input `input_0` of `example/by_hand` has shape (2, 3) and stride {stride}; a stride has "
        "one non-negative entry per dimension."
    )


def test_symbols_and_scalars_are_python_numbers() -> None:
    sample = build(
        inputs=(
            Input("symbol", Value("int64", ()), "s0"),
            Input("symbol", Value("int64", ()), "2*s0 + 1"),
            Input("scalar", Value("float64", ()), data=np.float64(0.5).tobytes()),
            Input("scalar", Value("bool", ()), data=b"\1"),
            Input("input", Value("float32", ("s0",))),
        ),
        outputs=None,
        symbols=(Symbol("s0", 4),),
    )
    values = make_inputs(sample, sizes={"s0": 7})
    numbers: list[Any] = list(values.values())[:4]
    assert numbers == [7, 15, 0.5, True]
    assert [type(number) for number in numbers] == [int, int, float, bool]
    assert values["input_0"].shape == (7,)  # type: ignore[union-attr]


def test_inputs_come_by_canonical_name_and_follow_from_the_seed() -> None:
    weight = Input("parameter", Value("bfloat16", (4, 3)), statistics=Statistics(0.0, 1.0))
    sample = build(inputs=(weight, MATRIX), outputs=None)
    first, second = make_inputs(sample, seed=1), make_inputs(sample, seed=1)
    assert list(first) == ["parameter_0", "input_0"]
    assert all(torch.equal(first[name], second[name]) for name in first)  # type: ignore[arg-type]
    other = make_inputs(sample, seed=2)
    assert not torch.equal(first["input_0"], other["input_0"])  # type: ignore[arg-type]
    assert list(make_inputs(sample, weights="parameters")) == ["input_0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "none"}, "`weights='none'` is unknown (accepted: 'inputs', 'parameters')."),
        (
            {"mode": "random"},
            "`mode='random'` is unknown (accepted: 'replay', 'fresh', 'probe').",
        ),
    ],
)
def test_an_unknown_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MaterializeError) as caught:
        make_inputs(build(outputs=None), **options)
    assert str(caught.value) == message


def test_weights_share_memory_but_no_place_in_it() -> None:
    each = Input("parameter", Value("float32", (300, 1000)), "weight")
    sample = build(inputs=(each,) * 6, outputs=())
    made = cast("dict[str, torch.Tensor]", make_inputs(sample))
    module = materialize(sample, weights="parameters")
    for drawn in (list(made.values()), list(module.parameters())):
        places = sorted((tensor.data_ptr(), tensor.nbytes) for tensor in drawn)
        gaps = [after - at - size for (at, size), (after, _) in itertools.pairwise(places)]
        assert min(gaps) >= 0
        assert sum(gap < 64 for gap in gaps) >= 3
        assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in drawn)
        first = drawn[0].detach().clone()
        for tensor in drawn[1:]:
            tensor.detach().fill_(0)
        assert torch.equal(drawn[0], first)
