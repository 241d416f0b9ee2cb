"""What is recorded of a tensor's elements."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from graphnet_datasets.frameworks.torch import statistics
from graphnet_datasets.frameworks.torch.statistics import (
    elements_to_store,
    encode,
    measure,
    round_significant,
)
from graphnet_datasets.sample import Statistics
from graphnet_datasets.sample.vocabulary import Role


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
@example(1.7976e308)
def test_rounding_keeps_four_digits_and_is_idempotent(value: float) -> None:
    rounded = round_significant(value)
    assert math.isclose(rounded, value, rel_tol=5.001e-4)
    assert round_significant(rounded) == rounded


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.integers(1, 7))
def test_chunks_give_the_statistics_of_the_whole(elements: list[float], chunk: int) -> None:
    tensor = torch.tensor(elements, dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "CHUNK", chunk)
        measured = measure(tensor)
    assert measured is not None
    array = np.array(elements)
    for figure, expected in zip(
        (measured.mean, measured.std, measured.min, measured.max),
        (array.mean(), array.std(), array.min(), array.max()),
        strict=True,
    ):
        assert figure is not None
        assert math.isclose(figure, expected, rel_tol=6e-4, abs_tol=1e-9)


def test_statistics_of_integers_have_an_exact_range() -> None:
    assert measure(torch.tensor([0, 128_255])) == Statistics(64130.0, 64130.0, 0.0, 128_255.0)


def test_statistics_of_booleans_are_the_share_of_true() -> None:
    assert measure(torch.tensor([True, True, False, True])) == Statistics(0.75, 0.433, 0.0, 1.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_bounds_stay_within_the_dtype(dtype: torch.dtype) -> None:
    smallest = torch.finfo(dtype).min
    measured = measure(torch.tensor([smallest, 0.0], dtype=dtype))
    assert measured is not None and measured.min is not None
    assert torch.tensor(measured.min, dtype=dtype).isfinite()


def test_a_constant_is_constant_to_the_last_digit() -> None:
    assert measure(torch.full((10_001,), 0.1)) == Statistics(0.1, 0.0, 0.1, 0.1)


def test_infinities_and_nan_are_left_out() -> None:
    tensor = torch.tensor([1.0, math.inf, 3.0, math.nan, -math.inf])
    assert measure(tensor) == Statistics(2.0, 1.0, 1.0, 3.0)
    assert measure(torch.tensor([math.nan])) is None


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float64, torch.uint16, torch.int8],
)
def test_every_dtype_is_measured(dtype: torch.dtype) -> None:
    measured = measure(torch.tensor([0.0, 2.0]).to(dtype))
    assert measured == Statistics(1.0, 1.0, 0.0, 2.0)


def test_complex_tensors_are_measured_part_by_part() -> None:
    assert measure(torch.tensor([1 + 3j])) == Statistics(2.0, 1.0, 1.0, 3.0)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1.5, -2.0]),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j, 3 - 4j]),
        torch.tensor([[1, 2], [3, 4]], dtype=torch.int32).t(),
        torch.tensor(7),
    ],
)
def test_elements_are_encoded_row_major(tensor: torch.Tensor) -> None:
    assert encode(tensor) == np.ascontiguousarray(tensor.numpy()).tobytes()


def test_bfloat16_is_encoded_bit_for_bit() -> None:
    assert encode(torch.tensor([1.0, -2.0]).bfloat16()) == bytes.fromhex("803f 00c0")


INDICES = torch.randint(0, 1000, (2048,), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("tensor", "role", "is_stored"),
    [
        (torch.tensor([3, 1]), "input", True),
        (torch.tensor([True, False]), "input", True),
        (torch.arange(100_000), "buffer", True),
        (INDICES, "input", False),
        (torch.ones(4096, dtype=torch.int64), "input", False),
        (torch.ones(64, 64).tril().bool(), "input", True),
        (torch.full((64, 64), -math.inf).triu(1), "buffer", True),
        (torch.full((64, 64), torch.finfo(torch.float32).min).triu(1), "input", True),
        (torch.tensor(-math.inf), "buffer", True),
        (torch.linspace(0, 1, 64), "buffer", False),
        (torch.linspace(0, 1, 64), "constant", True),
        (torch.tensor([3, 1]), "parameter", False),
    ],
    ids=[
        "few integers", "few booleans", "a range", "random indices", "a constant", "a mask",
        "a mask of infinities", "a mask of smallest floats", "an infinite number",
        "floats of a buffer", "floats of a constant", "integers of a parameter",
    ],
)  # fmt: skip
def test_elements_are_stored_where_statistics_would_not_do(
    tensor: torch.Tensor, role: Role, is_stored: bool
) -> None:
    assert elements_to_store(tensor, role) == (encode(tensor) if is_stored else None)
