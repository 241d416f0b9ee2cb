"""Shapes and memory without running, and bombs that are refused before they cost anything."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from graphnet_datasets.errors import MemoryLimitError
from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.frameworks.torch.shapes import (
    check_memory,
    measure_footprint,
    propagate,
)
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from ... import strategies
from .building import MATRIX, build

INT = Input("scalar", Value("int64", ()), data=np.int64(10**6).tobytes())


def test_results_have_dtype_shape_and_stride() -> None:
    sample = build(
        ("torch.Tensor.transpose", Ref(0), 0, 1),
        ("torch.Tensor.sort", Ref(0)),
        ("torch.Tensor.size", Ref(0)),
        ("torch.Tensor.to", Ref(0), Named("dtype", "bfloat16")),
    )
    assert propagate(sample) == (
        (Value("float32", (3, 2), (1, 3)),),
        (Value("float32", (2, 3)), Value("int64", (2, 3))),
        (),
        (Value("bfloat16", (2, 3)),),
    )


def test_sizes_of_symbols_can_be_chosen() -> None:
    sample = build(
        ("torch.cat", ListArg((Ref(0), Ref(0)))),
        inputs=(Input("input", Value("float32", ("s0", 3))),),
        symbols=(Symbol("s0", 4),),
    )
    assert propagate(sample) == ((Value("float32", (8, 3)),),)
    assert propagate(sample, {"s0": 10}) == ((Value("float32", (20, 3)),),)


def test_element_dependent_results_are_known_for_numbers() -> None:
    length = Input("buffer", Value("int64", ()), data=np.int64(5).tobytes())
    sample = build(
        ("torch.Tensor.item", Ref(1)),
        ("torch.zeros", Ref(2)),
        ("torch.nonzero", Ref(0)),
        Op("torch.nonzero", (Ref(0),), (), (Value("int64", (4, 2)),)),
        inputs=(MATRIX, length),
    )
    item, zeros, unknown, _ = propagate(sample)
    assert (item, zeros) == ((), (Value("float32", (5,)),))
    assert unknown == (Value("int64"),)


@given(strategies.runnable_samples())
@settings(max_examples=25)
def test_shapes_are_those_of_the_run(sample: Sample) -> None:
    whole = Sample(
        **{
            **{
                name: getattr(sample, name) for name in ("id", "framework", "task", "inputs", "ops")
            },
            "outputs": tuple(
                Ref(len(sample.inputs) + position) for position in range(sample.num_ops)
            ),
        }
    )
    results = propagate(whole)
    outputs = materialize(whole)(**make_inputs(whole))
    for found, output in zip(results, outputs, strict=True):
        tensors = output if isinstance(output, tuple) else (output,)
        assert found is not None
        assert [value.shape for value in found] == [tuple(tensor.shape) for tensor in tensors]


def test_the_peak_counts_live_storages_once() -> None:
    kilobyte = Input("input", Value("float32", (256,)))
    sample = build(
        ("torch.relu", Ref(0)),  # 1 KiB, dies at the next operator
        ("torch.relu", Ref(1)),  # 1 KiB
        ("torch.Tensor.view", Ref(2), 16, 16),  # a view: nothing
        ("torch.Tensor.add_", Ref(3), 1),  # in place: nothing
        ("torch.cat", ListArg((Ref(2), Ref(2)))),  # 2 KiB
        inputs=(kilobyte,),
    )
    footprint = measure_footprint(sample)
    assert footprint.input_bytes == 1024
    assert footprint.total_bytes == 4 * 1024
    assert footprint.peak_bytes == 1024 + 3 * 1024


def test_a_sample_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = build(("torch.relu", Ref(0)))
    first = check_memory(sample)
    monkeypatch.setattr("graphnet_datasets.frameworks.torch.shapes.measure_footprint", None)
    assert check_memory(sample) is first


def test_autocast_changes_the_dtypes_and_no_state_is_left() -> None:
    prefix = "torch.amp.autocast_mode"
    sample = build(
        (f"{prefix}._enter_autocast", "cpu", Named("dtype", "bfloat16"), True, None),
        ("torch.mm", Ref(0), Ref(1)),
        (f"{prefix}._exit_autocast", Ref(2)),
        inputs=(MATRIX, Input("parameter", Value("float32", (3, 3)))),
    )
    assert propagate(sample)[1] == (Value("bfloat16", (2, 3)),)
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")


def test_a_region_that_fails_inside_is_closed() -> None:
    prefix = "torch._functorch.predispatch"
    sample = build(
        (f"{prefix}._vmap_increment_nesting", 2, "error"),
        ("torch.mm", Ref(0), Ref(0)),
        (f"{prefix}._vmap_decrement_nesting",),
        ("torch.relu", Ref(0)),
        ("torch.zeros", 10**18),
    )
    with pytest.raises(MemoryLimitError):
        check_memory(sample)
    assert torch._C._functorch.maybe_current_level() is None  # type: ignore[attr-defined]


BOMBS = [
    (
        build(inputs=(Input("input", Value("float32", (10**9, 10**9))),), outputs=None),
        "The inputs of `example/by_hand` take 4,000,000,000.000 GB; the limit is ",
    ),
    (
        build(inputs=(Input("input", Value("float32", (2, 2), (10**15, 1))),), outputs=None),
        "The inputs of `example/by_hand` take 4,000,000.000 GB; the limit is ",
    ),
    (
        build(("torch.zeros", 10**9, 10**8)),
        "Op 0 (`torch.zeros`) of `example/by_hand` increases the memory of live tensors to "
        "400,000,000.000 GB; the limit is ",
    ),
    (
        build(("torch.zeros", 10**12, 10**12)),
        "Op 0 (`torch.zeros`) of `example/by_hand`: The call needs more than 2**63 bytes (",
    ),
    (
        build(("torch.Tensor.repeat", Ref(0), 10**9, 10**9)),
        "Op 0 (`torch.Tensor.repeat`) of `example/by_hand`",
    ),
    (
        build(("operator.pow", 9, 9), ("operator.pow", 9, Ref(0)), inputs=()),
        "Op 1 (`operator.pow`) of `example/by_hand`: Expected an exponent in [-64, 64], got "
        "387420489. Skip the sample.",
    ),
    (
        build(*[("operator.mul", Ref(i), Ref(i)) for i in range(60)], inputs=(INT,)),
        "Op 1 (`operator.mul`) of `example/by_hand`: The result is an integer of 80 bits; at most "
        "64 are supported. Skip the sample.",
    ),
    (
        build(("operator.lshift", 1, 10**9), inputs=()),
        "Op 0 (`operator.lshift`) of `example/by_hand`: Expected an exponent in [-64, 64], got "
        "1000000000. Skip the sample.",
    ),
    (
        build(("operator.mul", ListArg((0,)), 10**10), inputs=()),
        "Op 0 (`operator.mul`) of `example/by_hand`: The call repeats a list to more than "
        "100000 items. Skip the sample.",
    ),
    (
        build(("torch.ops.aten.mul", ListArg((0,)), 10**10), inputs=()),
        "Op 0 (`torch.ops.aten.mul`) of `example/by_hand`: The call selects an overload for lists "
        "or numbers. Skip the sample.",
    ),
    (
        build(("operator.mod", "%1000000000d", 1), inputs=()),
        "Op 0 (`operator.mod`) of `example/by_hand`: The call computes with strings. Skip the "
        "sample.",
    ),
    (
        build(("builtins.round", 7, -(10**9)), inputs=()),
        "Op 0 (`builtins.round`) of `example/by_hand`: The call rounds to more than 400 decimals. "
        "Skip the sample.",
    ),
    (
        build(("torch.Tensor.expand", Ref(0), 10**11, 2, 3), ("torch.Tensor.unbind", Ref(1))),
        "Op 1 (`torch.Tensor.unbind`) of `example/by_hand`: The call splits a tensor into "
        "100000000000 parts; at most 100000 are supported. Skip the sample.",
    ),
    (
        build(("torch.Tensor.expand", Ref(0), 10**11, 2, 3), ("torch.split", Ref(1), 1)),
        "Op 1 (`torch.split`) of `example/by_hand`: The call splits a tensor into "
        "100000000000 parts; at most 100000 are supported. Skip the sample.",
    ),
    (
        build(("torch.Tensor.expand", Ref(0), 10**11, 2, 3), ("torch.Tensor.tolist", Ref(1))),
        "Op 1 (`torch.Tensor.tolist`) of `example/by_hand`: The call splits a tensor into "
        "600000000000 parts; at most 100000 are supported. Skip the sample.",
    ),
    (
        build(
            ("torch.Tensor.sum", Ref(0)),
            ("torch.Tensor.item", Ref(1)),
            ("builtins.int", Ref(2)),
            ("operator.pow", 3, Ref(3)),
        ),
        "Op 3 (`operator.pow`) of `example/by_hand`: Expected an exponent in [-64, 64], got ",
    ),
    (
        build(
            ("torch.Tensor.nonzero", Ref(0)),
            ("torch.Tensor.size", Ref(1), 0),
            *[("operator.mul", Ref(i), Ref(i)) for i in range(2, 62)],
        ),
        "Op 5 (`operator.mul`) of `example/by_hand`: The call may compute an integer of more than "
        "1024 bits. Skip the sample.",
    ),
]


@pytest.mark.timeout(300)  # a bomb that goes off takes hours, or all memory
@pytest.mark.parametrize(("bomb", "message"), BOMBS)
def test_a_bomb_is_refused_before_it_costs_anything(bomb: Sample, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MemoryLimitError) as caught:
            materialize(bomb, memory_limit_bytes=10**9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(message)
    assert peak < 50e6


def test_lists_that_double_are_refused() -> None:
    doubling = [("operator.add", Ref(i), Ref(i)) for i in range(1, 60)]
    sample = build(("torch.Tensor.size", Ref(0)), *doubling)
    with pytest.raises(MemoryLimitError, match="concatenates lists to more than 100000"):
        materialize(sample)


def test_the_limit_of_the_caller_is_exact() -> None:
    sample = build(("torch.relu", Ref(0)))
    assert check_memory(sample, 48).peak_bytes == 48
    with pytest.raises(MemoryLimitError) as caught:
        check_memory(sample, 47)
    assert str(caught.value) == (
        "Op 0 (`torch.relu`) of `example/by_hand` increases the memory of live tensors to 0.000 "
        "GB; the limit is 0.000 GB. Raise `memory_limit_bytes`, or skip the sample."
    )


def test_operators_without_fake_tensors_stay_unknown() -> None:
    quantized = Op("torch.add", (), (), results=(Value("qint32", (2, 3)),))
    assert propagate(Sample("a/b", "torch", "other", (), (quantized,), Ref(0))) == (None,)


def test_a_recorded_shape_beyond_64_bits_is_refused() -> None:
    huge = Op("torch.add", (), (), results=(Value("float32", (2**40, 2**40)),))
    with pytest.raises(MemoryLimitError, match=r"Op 0 \(`torch.add`\) of `a/b`: The call needs"):
        propagate(Sample("a/b", "torch", "other", (), (huge,), Ref(0)))
