"""`min_t` against looking at every element at many t."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphnet_datasets.scores.formats import decode, decode_wide
from graphnet_datasets.scores.tolerance import (
    ATOL_RTOL_EXPONENTS,
    min_t,
    null_mean_t,
    null_t,
    oracle_t,
    passes_at,
    tolerances,
)

BIT_PATTERNS = {"bfloat16": np.uint16, "complex32": np.uint32}
STORAGE = BIT_PATTERNS | {
    "float8_e4m3fn": np.uint8, "quint8": np.uint8, "quint2x4": np.uint8, "quint4x2": np.uint8,
    "qint8": np.int8, "qint32": np.int32,
}  # fmt: skip
"""NumPy's dtype of the elements where its name is another."""
WITH_TOLERANCE = st.sampled_from(
    ["float16", "bfloat16", "float32", "float64", "complex64", "qint8"]
)


def elements_of(numbers: list[float], dtype: str) -> np.ndarray:
    """Return elements of `dtype`; a number without one of its own becomes a near one."""
    array = np.array(numbers, np.float64)
    with np.errstate(over="ignore"):
        if dtype == "bfloat16":
            return (array.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        if dtype == "complex64":
            return (array + 1j * array[::-1]).astype(np.complex64)
        if dtype == "qint8":
            return np.clip(np.nan_to_num(array), -128, 127).astype(np.int8)
        return array.astype(dtype)


MAGNITUDES = st.floats(1e-12, 1e12) | st.floats(-1e12, -1e-12) | st.just(0.0)
ANY_NUMBER = MAGNITUDES | st.floats(allow_nan=True, allow_infinity=True)
PAIRS = st.lists(st.tuples(MAGNITUDES, MAGNITUDES), min_size=1, max_size=30)
NEAR_PAIRS = st.lists(
    st.tuples(MAGNITUDES, st.floats(-1e-3, 1e-3)).map(
        lambda each: (each[0], each[0] * (1 + each[1]))
    ),
    min_size=1,
    max_size=30,
)
SIGNALLING = b"\x00\x00\xa0\x7f\x00\x00\xa0\xff"
"""A NaN that signals as float32, twice."""


def any_bits(count: int) -> st.SearchStrategy[bytes]:
    """Return `count` bytes, often of one value many times or of NaNs."""
    of_nan = st.just((SIGNALLING * count)[:count])
    return st.binary(min_size=count, max_size=count) | of_nan


def allclose(x: np.ndarray, r: np.ndarray, dtype: str, t: float) -> bool:
    """Tell the same as `passes_at`, by NumPy's own comparison, for dtypes that NumPy holds."""
    atol, rtol = tolerances(t, dtype)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return np.allclose(x.astype(wide), r.astype(wide), rtol=rtol, atol=atol, equal_nan=True)


@given(PAIRS | NEAR_PAIRS, WITH_TOLERANCE)
def test_min_t_is_where_passing_begins(pairs: list[tuple[float, float]], dtype: str) -> None:
    x = elements_of([pair[0] for pair in pairs], dtype)
    r = elements_of([pair[1] for pair in pairs], dtype)
    t = min_t(x, r, dtype)
    if t == -math.inf:
        assert passes_at(x, r, dtype, -200)
    elif math.isfinite(t):
        assert passes_at(x, r, dtype, t + 1e-9)
        assert not passes_at(x, r, dtype, t - 1e-9)
    for whole in range(-14, 8):
        assert passes_at(x, r, dtype, whole) == (t <= whole)


@given(PAIRS | NEAR_PAIRS, st.sampled_from(["float32", "float64", "complex64"]))
def test_passing_agrees_with_allclose(pairs: list[tuple[float, float]], dtype: str) -> None:
    x = elements_of([pair[0] for pair in pairs], dtype)
    r = elements_of([pair[1] for pair in pairs], dtype)
    t = min_t(x, r, dtype)
    for whole in range(-12, 6):
        assert allclose(x, r, dtype, whole) == (t <= whole)


@given(
    st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER), min_size=1, max_size=8),
    st.sampled_from(["float16", "bfloat16", "float32", "float64"]),
)
@example([(math.nan, math.nan), (1.0, 1.5)], "float32")
@example([(math.inf, math.inf), (-math.inf, -math.inf)], "float32")
@example([(math.inf, -math.inf)], "float32")
@example([(math.nan, 1.0)], "float32")
@example([(1.0, math.nan)], "float64")
def test_nonfinite_elements_must_be_equal(pairs: list[tuple[float, float]], dtype: str) -> None:
    x = elements_of([pair[0] for pair in pairs], dtype)
    r = elements_of([pair[1] for pair in pairs], dtype)
    numbers = [array.astype(np.float64) for array in (x, r)]
    if dtype == "bfloat16":
        numbers = [(array.astype(np.uint32) << 16).view(np.float32) for array in (x, r)]
    is_same = np.equal(*numbers) | (np.isnan(numbers[0]) & np.isnan(numbers[1]))
    is_finite = np.isfinite(numbers[0]) & np.isfinite(numbers[1])
    t = min_t(x, r, dtype)
    if (~is_finite & ~is_same).any():
        assert t == math.inf
    else:
        assert t == min_t(x[is_finite], r[is_finite], dtype)


@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), max_size=5),
    st.sampled_from(["uint8", "int64", "bool", "float8_e4m3fn", "float8_e8m0fnu"]),
)
def test_other_dtypes_have_to_be_equal(pairs: list[tuple[int, int]], dtype: str) -> None:
    storage = dtype if dtype in ("uint8", "int64", "bool") else np.uint8
    x, r = (np.array([pair[side] for pair in pairs], storage) for side in (0, 1))
    expected = -math.inf if np.array_equal(x, r) else math.inf
    if "float8_e4m3fn" in dtype and not np.array_equal(x, r):
        is_nan = [(array & 127) == 127 for array in (x, r)]
        is_zero = [(array & 127) == 0 for array in (x, r)]
        is_same = (x == r) | (is_nan[0] & is_nan[1]) | (is_zero[0] & is_zero[1])
        expected = -math.inf if is_same.all() else math.inf
    assert min_t(x, r, dtype) == expected
    assert passes_at(x, r, dtype, 4) == (expected == -math.inf)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
def test_an_empty_output_is_equal(dtype: str) -> None:
    empty = np.empty((0, 3), BIT_PATTERNS.get(dtype, dtype))
    assert min_t(empty, empty, dtype) == -math.inf
    assert null_t(empty, dtype) == -math.inf
    assert null_mean_t(empty, dtype) == -math.inf


@pytest.mark.parametrize("dtype", list(ATOL_RTOL_EXPONENTS))
def test_at_zero_both_tolerances_are_one(dtype: str) -> None:
    assert tolerances(0, dtype) == (1.0, 1.0)


def test_exponents_are_the_reports() -> None:
    assert tolerances(-5, "float16") == pytest.approx((1e-5, 1e-3))
    assert tolerances(-5, "bfloat16") == pytest.approx((1e-5, 10**-1.796))
    assert tolerances(-5, "float32") == pytest.approx((1e-5, 10**-5.886))
    assert tolerances(-5, "float64") == pytest.approx((1e-7, 1e-7))
    assert tolerances(-5, "int32") == (0.0, 0.0)


@given(st.integers(-9, 3), st.floats(0.1, 10))
def test_a_difference_on_the_edge_of_a_whole_t_passes_there(t: int, reference: float) -> None:
    # float64 alone has differences fine enough to stand on the edge.
    atol, rtol = tolerances(t, "float64")
    r = np.array([reference])
    x = r + (atol + rtol * r)
    assert (min_t(x, r, "float64") <= t) == passes_at(x, r, "float64", t)


@given(st.lists(MAGNITUDES, min_size=1, max_size=40), WITH_TOLERANCE)
def test_null_t_is_min_t_of_zeros(numbers: list[float], dtype: str) -> None:
    reference = elements_of(numbers, dtype)
    expected = min_t(np.zeros_like(reference), reference, dtype)
    assert null_t(reference, dtype) == pytest.approx(expected, abs=1e-9)


@given(st.lists(MAGNITUDES, min_size=1, max_size=40))
def test_null_mean_t_is_min_t_of_the_mean(numbers: list[float]) -> None:
    reference = np.array(numbers)
    mean = np.full_like(reference, reference.sum() / reference.size)
    assert null_mean_t(reference, "float64") == pytest.approx(
        min_t(mean, reference, "float64"), abs=1e-9
    )


@given(
    st.lists(MAGNITUDES, min_size=1, max_size=40),
    st.sampled_from(["float16", "float32", "bfloat16"]),
)
def test_null_mean_t_is_the_worst_of_all_elements(numbers: list[float], dtype: str) -> None:
    from graphnet_datasets.scores.formats import decode
    from graphnet_datasets.scores.tolerance import required_t

    reference = elements_of(numbers, dtype)
    values = decode(reference, dtype).astype(np.float64)
    if not np.isfinite(values).all():
        assert null_mean_t(reference, dtype) == math.inf
        return
    mean = values.sum() / values.size
    worst = max(required_t([abs(value - mean)], [abs(value)], dtype) for value in values)
    assert null_mean_t(reference, dtype) == pytest.approx(worst, abs=1e-9)


def test_null_means_nothing_where_nothing_can_be_near() -> None:
    assert null_t(np.array([np.nan], np.float32), "float32") == math.inf
    assert null_mean_t(np.array([np.inf], np.float32), "float32") == math.inf
    assert null_t(np.zeros(3, np.int64), "int64") == -math.inf
    assert null_t(np.array([0, 1]), "int64") == math.inf
    assert null_mean_t(np.array([7, 7]), "int64") == -math.inf
    assert null_mean_t(np.array([7, 8]), "int64") == math.inf


def test_a_softmax_over_many_classes_passes_as_zeros() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 250_000))
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    assert null_t(softmax.astype(np.float32), "float32") < -3
    assert null_t((softmax * 0 + 1 / 250_000).astype(np.float32), "float32") < -5


def test_many_chunks_give_the_worst_of_them() -> None:
    generator = np.random.default_rng(0)
    reference = generator.normal(size=200_000).astype(np.float32)
    actual = reference.copy()
    for place in (10, 70_000, 199_999):
        actual[place] += 1e-3 * (1 + place / 1e5)
        alone = min_t(actual[place : place + 1], reference[place : place + 1], "float32")
        assert min_t(actual, reference, "float32") == pytest.approx(alone, abs=0.5)
    worst = max(
        min_t(actual[i : i + 1], reference[i : i + 1], "float32") for i in (10, 70_000, 199_999)
    )
    assert min_t(actual, reference, "float32") == worst


@pytest.mark.parametrize("dtype", sorted({*ATOL_RTOL_EXPONENTS} | {"int64", "float8_e4m3fn"}))
@given(data=st.data())
def test_memory_that_nobody_wrote_is_compared_without_a_warning(
    dtype: str, data: st.DataObject
) -> None:
    """Any bits, also NaNs that signal: to the processor, widening those is invalid."""
    storage = np.dtype(STORAGE.get(dtype, dtype))
    x, r = (
        np.frombuffer(data.draw(any_bits(6 * storage.itemsize)), storage).copy() for _ in range(2)
    )
    assert min_t(x, x, dtype) == -math.inf
    t = min_t(x, r, dtype)
    assert not math.isnan(t)
    if math.isfinite(t):
        assert passes_at(x, r, dtype, t + 1e-6)
    assert not math.isnan(null_t(r, dtype))
    assert not math.isnan(null_mean_t(r, dtype))
    numbers = decode(r, dtype)
    assert oracle_t(r, numbers, dtype) in (-math.inf, None)
    wide = decode_wide(r, dtype)
    assert np.array_equal(np.isnan(wide), np.isnan(numbers))


@pytest.mark.parametrize(
    "signalling",
    [
        np.full(3, 0x7D00, np.uint16).view(np.float16),
        np.full(3, 0x7FA00000, np.uint32).view(np.float32),
        np.full(3, 0x7FF4 << 48, np.uint64).view(np.float64),
    ],
    ids=lambda each: each.dtype.name,
)
def test_a_signalling_nan_is_a_nan(signalling: np.ndarray) -> None:
    dtype = signalling.dtype.name
    assert min_t(signalling, np.full(3, np.nan, dtype), dtype) == -math.inf
    assert min_t(signalling, np.ones(3, dtype), dtype) == math.inf
