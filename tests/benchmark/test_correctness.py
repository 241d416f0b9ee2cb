"""Rows of compared outputs, and the faults of other tools that must not come back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.benchmark.judging.calls import compare_calls
from graphnet_datasets.benchmark.judging.correctness import (
    Output,
    compare_outputs,
    count_not_finite,
    eager_t,
    find_mismatch,
    is_as_close_as_eager,
    overall_min_t,
    overall_null_t,
    overall_stale_t,
)
from graphnet_datasets.schema import OUTPUT_FIELDS, Reason


def float32(*numbers: float, shape: tuple[int, ...] | None = None) -> Output:
    elements = np.array(numbers, np.float32)
    return Output("float32", elements if shape is None else elements.reshape(shape))


def test_equal_outputs() -> None:
    output = float32(1.0, -2.0, math.nan, math.inf)
    (row,) = compare_outputs([output], [output])
    assert list(row) == [field.name for field in OUTPUT_FIELDS]
    assert row["min_t"] == -math.inf
    assert (row["max_abs_error"], row["max_rel_error"], row["mismatch_share"]) == (0, 0, 0)
    assert row["is_nonfinite_mismatch"] is False
    assert row["rmse_baseline"] is None
    assert find_mismatch([output], [output]) == (Reason.NONE, "")


def test_errors_are_the_largest_of_all_elements() -> None:
    baseline, candidate = float32(1.0, 100.0, 0.0, 5.0), float32(1.5, 101.0, 0.25, 5.0)
    (row,) = compare_outputs([baseline], [candidate])
    assert row["max_abs_error"] == 1.0
    assert row["max_rel_error"] == 0.5, "an element whose baseline is zero has no relative error"
    assert row["mismatch_share"] == 0.75
    assert overall_min_t([row]) == row["min_t"] < 0


@pytest.mark.parametrize(
    ("expected", "actual", "reason", "message"),
    [
        (
            (4, 8),
            (1, 4, 8),
            Reason.SHAPE,
            "Output 0 has shape (1, 4, 8), but eager's has (4, 8).",
        ),
        ((1,), (8,), Reason.SHAPE, "Output 0 has shape (8,), but eager's has (1,)."),
    ],
)
def test_shapes_that_broadcast_are_no_match(
    expected: tuple[int, ...], actual: tuple[int, ...], reason: Reason, message: str
) -> None:
    baseline = Output("float32", np.zeros(expected, np.float32))
    candidate = Output("float32", np.zeros(actual, np.float32))
    assert find_mismatch([baseline], [candidate]) == (reason, message)
    rows = compare_outputs([baseline], [candidate])
    assert overall_min_t(rows) is None
    assert rows[0]["candidate_shape"] == list(actual)


def test_no_outputs_are_never_correct() -> None:
    assert find_mismatch([], []) == (
        Reason.COUNT,
        "There are no outputs, so nothing could be compared.",
    )
    assert overall_min_t(compare_outputs([], [])) is None
    assert overall_null_t([]) is None


def test_fewer_outputs_are_not_cut_to_fit() -> None:
    outputs = [float32(1.0), float32(2.0)]
    assert find_mismatch(outputs, outputs[:1]) == (
        Reason.COUNT,
        "The candidate returned 1 outputs, but eager returned 2.",
    )
    rows = compare_outputs(outputs, outputs[:1])
    assert [row["min_t"] for row in rows] == [-math.inf, None]
    assert overall_min_t(rows) is None
    rows = compare_outputs(outputs[:1], outputs)
    assert [row["dtype"] for row in rows] == ["float32", None]


def test_a_dtype_mismatch_is_called_that() -> None:
    baseline = float32(1.0)
    candidate = Output("bfloat16", np.array([0x3F80], np.uint16))
    assert find_mismatch([baseline], [candidate]) == (
        Reason.DTYPE,
        "Output 0 has dtype bfloat16, but eager's has float32.",
    )


def test_nan_in_eager_condemns_nobody() -> None:
    baseline = float32(1.0, math.nan)
    (row,) = compare_outputs([baseline], [float32(1.0, math.nan)])
    assert row["min_t"] == -math.inf
    (row,) = compare_outputs([baseline], [float32(1.0, 0.0)])
    assert row["min_t"] == math.inf
    assert row["is_nonfinite_mismatch"] is True


def test_one_wrong_integer_in_a_million_shows_as_a_share() -> None:
    baseline = np.zeros(1_000_000, np.int64)
    candidate = baseline.copy()
    candidate[123_456] = 1
    (row,) = compare_outputs([Output("int64", baseline)], [Output("int64", candidate)])
    assert row["min_t"] == math.inf
    assert row["mismatch_share"] == 1e-6


@pytest.mark.parametrize("dtype", ["complex128", "float64", "bool", "uint16"])
def test_elements_of_every_size_are_compared_by_bits(dtype: str) -> None:
    baseline = np.array([1, 0, 1, 0], dtype)
    candidate = np.array([1, 0, 0, 0], dtype)
    (row,) = compare_outputs([Output(dtype, baseline)], [Output(dtype, candidate)])
    assert row["mismatch_share"] == 0.25
    assert row["max_abs_error"] == 1


def test_distance_from_the_oracle_is_taken_where_the_oracle_is_finite() -> None:
    oracle = [Output("float64", np.array([1.0, 2.0, math.nan]))]
    (row,) = compare_outputs([float32(1.0, 2.5, 1.0)], [float32(2.0, 2.0, 1.0)], oracle)
    assert row["rmse_baseline"] == pytest.approx(math.sqrt(0.25 / 2))
    assert row["rmse_candidate"] == pytest.approx(math.sqrt(1 / 2))
    assert is_as_close_as_eager(row, factor=1.9) is False
    assert is_as_close_as_eager(row, factor=2.1) is True


def test_the_oracles_rule_needs_an_oracle() -> None:
    (row,) = compare_outputs([float32(1.0)], [float32(1.0)])
    assert is_as_close_as_eager(row) is None
    (row,) = compare_outputs(
        [float32(1.0)], [float32(math.nan)], [Output("float64", np.array([1.0]))]
    )
    assert is_as_close_as_eager(row) is False


def test_null_outputs_pass_from_null_t_on() -> None:
    rows = compare_outputs([float32(1e-6, 2e-6), float32(0.0)], [float32(0.0, 0.0), float32(0.0)])
    assert rows[0]["min_t"] == rows[0]["null_t"]
    assert rows[1]["null_t"] == -math.inf
    assert overall_null_t(rows) == min(rows[0]["null_t"], rows[0]["null_mean_t"])


@given(
    st.lists(
        st.tuples(st.floats(width=32), st.floats(width=32)),
        min_size=1,
        max_size=20,
    )
)
def test_rows_of_any_numbers_are_consistent(pairs: list[tuple[float, float]]) -> None:
    baseline, candidate = (float32(*(pair[side] for pair in pairs)) for side in (0, 1))
    (row,) = compare_outputs([baseline], [candidate])
    if row["mismatch_share"] == 0:
        assert row["min_t"] == -math.inf
    if row["is_nonfinite_mismatch"]:
        assert row["min_t"] == math.inf
    assert math.isfinite(row["max_abs_error"])
    assert 0 <= row["mismatch_share"] <= 1


@given(st.sampled_from(["float16", "float32", "float64"]), st.binary(min_size=96, max_size=96))
def test_any_bits_give_rows_without_a_warning(dtype: str, noise: bytes) -> None:
    """Memory that nobody wrote may hold NaNs that signal, and warnings are errors here."""
    signalling = b"\x00\x7d" * 4 + b"\x00\x00\xa0\x7f" * 4 + b"\x00" * 6 + b"\xf4\x7f"
    length = len(signalling)
    expected = Output(dtype, np.frombuffer(noise[:length], dtype))
    for actual in (noise[-length:], signalling, bytes(length)):
        candidate = Output(dtype, np.frombuffer(actual, dtype))
        (row,) = compare_outputs([expected], [candidate], [expected])
        assert row["num_elements"] == length // np.dtype(dtype).itemsize
        assert eager_t([candidate], [expected]) is not None
        assert len(count_not_finite([candidate])) == 1


ONE_VALUE = {
    "one element": float32(2.5),
    "no dimensions": float32(2.5, shape=()),
    "one row normalized": float32(1.0, shape=(1, 1)),
    "equal elements": float32(*[0.1] * 50),
    "equal up to rounding": float32(1.0, 1.0000001, 0.99999994),
    "bfloat16": Output("bfloat16", np.full(3, 0x3FC0, np.uint16)),
    "complex64": Output("complex64", np.full(2, 1 + 2j, np.complex64)),
}


@pytest.mark.parametrize("name", ONE_VALUE)
def test_the_mean_is_no_control_where_it_reproduces_the_output(name: str) -> None:
    expected = ONE_VALUE[name]
    rows = compare_outputs([expected], [expected])
    assert rows[0]["null_mean_t"] is None
    assert overall_null_t(rows) == rows[0]["null_t"] > -1.1


def test_integers_that_are_all_equal_are_held_against_zeros() -> None:
    for elements in (np.array([7]), np.full(5, 3), np.ones(2, bool)):
        output = Output(str(elements.dtype), elements)
        assert overall_null_t(compare_outputs([output], [output])) == math.inf
    for elements in (np.zeros(1, np.int64), np.zeros((0, 3), np.float32)):
        output = Output(str(elements.dtype), elements)  # zeros are the right answer
        assert overall_null_t(compare_outputs([output], [output])) == -math.inf


def test_the_mean_stays_a_control_of_elements_that_differ() -> None:
    (row,) = compare_outputs([float32(1.0, 1.001)], [float32(1.0, 1.001)])
    assert row["null_mean_t"] < row["null_t"]


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=5))
def test_null_t_is_minus_infinity_only_where_zeros_are_right(numbers: list[float]) -> None:
    rows = compare_outputs([float32(*numbers)], [float32(*numbers)])
    assert (overall_null_t(rows) == -math.inf) == (not any(numbers))


def test_stale_t_is_that_of_the_output_that_moves_most() -> None:
    first, later = [float32(1.0), float32(5.0)], [float32(1.00001), float32(5.5)]
    rows = compare_calls([(first, first), (later, later)])
    assert overall_stale_t(rows) == rows[1]["constant_t"] > rows[0]["constant_t"]
    assert overall_stale_t(compare_calls([(first, first)])) is None


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("count", [1, 2, 3, 40, 4096])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_accuracy_is_a_ratio_to_eagers_own_error(dtype: str, count: int, size: float) -> None:
    truth = size * np.random.default_rng(count).uniform(1, 2, size=count)
    eager = Output(dtype, truth.astype(dtype))
    drift = 1 + 2000 * np.finfo(dtype).eps
    drifted = Output(dtype, (eager.elements.astype(np.float64) * drift).astype(dtype))
    for candidate, is_close in ((eager, True), (drifted, False)):
        (row,) = compare_outputs([eager], [candidate], [Output("float64", truth)])
        assert is_as_close_as_eager(row) is is_close
        assert is_as_close_as_eager(row | {"rms_oracle": None}) is is_close  # an older record


def test_an_eager_arm_that_is_exact_by_chance_condemns_nobody() -> None:
    exact = np.arange(1.0, 2001.0)
    eager = Output("float32", exact.astype("f4"))
    rounded = Output("float32", np.nextafter(eager.elements, np.float32(0)))
    (row,) = compare_outputs([eager], [rounded], [Output("float64", exact)])
    assert row["rmse_baseline"] == 0
    assert is_as_close_as_eager(row) is True
