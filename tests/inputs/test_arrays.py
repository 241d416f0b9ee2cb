"""`make_array`: statistics honoured, modes, stored data, and the same elements everywhere."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import SampleError
from graphnet_datasets.inputs import STORAGE, make_array
from graphnet_datasets.sample import Input, Sample, Statistics, Symbol, Value
from graphnet_datasets.sample.vocabulary import ITEM_SIZE_BYTES

from ..strategies import samples

GOLDEN = {
    "bool": ("2566742dc8c14cf0", "8aeee5c94456dc19"),
    "uint8": ("0fe0d2ad3d44a31b", "699e11db43ba6df8"),
    "int16": ("1344bce0cd893d2c", "3c0ca47539a1eac5"),
    "int64": ("7362bff520f1b51b", "968cac916cc1c194"),
    "uint64": ("ca3df55286a3a32f", "2ae17e372b529797"),
    "float8_e4m3fn": ("8da1d3007e8383a9", "903d616e6f9f1457"),
    "float8_e8m0fnu": ("ef0f22137b90d8fe", "7ad83f72522d7a7f"),
    "float16": ("0b8670b73e34faed", "6665cd6cb8d9d665"),
    "bfloat16": ("b1f5075f0fef2106", "38f8e0cb229124a1"),
    "float32": ("e66a3041e8610827", "e51c39cd7fa99aab"),
    "float64": ("226fb8b823355807", "6545419fa54ce59f"),
    "complex32": ("de305d5405ecb076", "ee53ab909820c16e"),
    "complex64": ("e3edf814a8e80b03", "31e50738f29b3942"),
}
"""Digests of 200,001 and 300,001 elements: they are the same on every machine and never change."""


def sample_of(
    dtype: str,
    shape: tuple,
    statistics: Statistics | None = None,
    data: bytes | None = None,
    symbols: tuple[Symbol, ...] = (),
) -> Sample:
    each = Input("parameter", Value(dtype, shape), statistics=statistics, data=data)
    return Sample("golden/tensor", "torch", "other", (each,), (), (), symbols=symbols)


@pytest.mark.parametrize("dtype", GOLDEN)
def test_elements_are_the_same_everywhere(dtype: str) -> None:
    found = []
    for size in (200_001, 300_001):
        each = Input("input", Value(dtype, (size,)), statistics=Statistics(0.5, 2.0, -3.0, 4.0))
        array = make_array(Sample("golden/tensor", "torch", "other", (each,), (), ()), 0, seed=7)
        little = array.astype(array.dtype.newbyteorder("<"))
        found.append(hashlib.blake2b(little.tobytes(), digest_size=8).hexdigest())
    assert tuple(found) == GOLDEN[dtype]


@pytest.mark.parametrize("dtype", list(ITEM_SIZE_BYTES))
def test_every_dtype_has_elements_of_its_size(dtype: str) -> None:
    array = make_array(sample_of(dtype, (3, 5)), 0)
    assert array.shape == (3, 5)
    assert array.dtype == np.dtype(STORAGE[dtype])
    assert array.itemsize == ITEM_SIZE_BYTES[dtype]
    assert array.flags.c_contiguous


@pytest.mark.slow
@given(samples(), st.sampled_from(["replay", "probe"]))
def test_every_sample_either_has_inputs_or_contradicts_itself(sample: Sample, mode: str) -> None:
    for index, each in enumerate(sample.inputs):
        known = each.calibrated or each.statistics or Statistics()
        std = -1.0 if known.std is None or not math.isfinite(known.std) else known.std
        bounds = [each for each in (known.min, known.max) if each is not None]
        is_contradiction = each.data is None or each.calibrated is not None
        is_contradiction &= each.role not in ("symbol", "scalar")
        is_contradiction &= (std < 0 and std != -1.0) or (
            len(bounds) == 2 and all(map(math.isfinite, bounds)) and bounds[0] > bounds[1]
        )
        if is_contradiction:
            with pytest.raises(SampleError):
                make_array(sample, index, mode=mode)
        else:
            array = make_array(sample, index, mode=mode)
            expected = () if each.role == "symbol" else sample.shape_of(each.value)
            assert array.shape == expected


MOMENTS = st.tuples(
    st.floats(-100, 100), st.floats(0.01, 100), st.floats(2, 10), st.floats(2, 10)
).map(lambda each: (each[0], each[1], each[0] - each[2] * each[1], each[0] + each[3] * each[1]))


@given(MOMENTS, st.integers(0, 2**63))
def test_mean_std_and_bounds_are_those_recorded(
    recorded: tuple[float, float, float, float], seed: int
) -> None:
    mean, std, minimum, maximum = recorded
    sample = sample_of("float64", (2**14,), Statistics(mean, std, minimum, maximum))
    array = make_array(sample, 0, seed=seed)
    assert array.min() >= minimum
    assert array.max() <= maximum
    assert array.mean() == pytest.approx(mean, abs=0.06 * std)
    assert array.std() == pytest.approx(std, rel=0.08)


@given(st.floats(0.05, 1.3), st.booleans())
def test_a_skewed_distribution_keeps_its_moments_and_its_foot(
    std: float, is_mirrored: bool
) -> None:
    # Running variances: positive, with a long tail; or the same below zero.
    recorded = Statistics(1.0, std, 0.001, 60.0)
    if is_mirrored:
        recorded = Statistics(-1.0, std, -60.0, -0.001)
    array = make_array(sample_of("float64", (2**16,), recorded), 0)
    assert array.min() >= recorded.min
    assert array.max() <= recorded.max
    assert array.mean() == pytest.approx(recorded.mean, abs=0.03)
    assert array.std() == pytest.approx(std, rel=0.05)
    assert np.mean(array == (recorded.max if is_mirrored else recorded.min)) < 0.03


def test_a_running_variance_is_never_below_its_minimum() -> None:
    recorded = Statistics(0.1, 0.5, 0.004, 9.0)
    array = make_array(sample_of("float32", (100_000,), recorded), 0)
    assert array.min() >= np.float32(0.004)
    assert array.mean() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "complex64"])
def test_a_standard_deviation_of_zero_is_a_constant(dtype: str) -> None:
    array = make_array(sample_of(dtype, (1000,), Statistics(0.0, 0.0, 0.0, 0.0)), 0)
    assert not array.view(np.uint8).any(), "zeros, and none of them negative"
    array = make_array(sample_of(dtype, (1000,), Statistics(0.5, 0.0, 0.5, 0.5)), 0)
    assert np.unique(array).size == 1


@pytest.mark.parametrize("constant", [0.0, 1.0, -3.0, 1e-5])
def test_probe_leaves_no_float_constant(constant: float) -> None:
    sample = sample_of("float32", (1000,), Statistics(constant, 0.0, constant, constant))
    assert np.unique(make_array(sample, 0)).tolist() == [np.float32(constant)]
    probe = make_array(sample, 0, mode="probe")
    assert np.unique(probe).size > 900
    if constant:
        assert (np.sign(probe) == np.sign(constant)).all(), "a variance stays positive"


def test_probe_flips_an_eighth_of_a_constant_mask() -> None:
    sample = sample_of("bool", (100_000,), Statistics(1.0, 0.0, 1.0, 1.0))
    assert make_array(sample, 0).all()
    assert make_array(sample, 0, mode="probe").mean() == pytest.approx(0.875, abs=0.01)


def test_probe_and_replay_draw_the_same_without_constants() -> None:
    sample = sample_of("float32", (1000,), Statistics(0.1, 0.3, -1.0, 1.0))
    assert np.array_equal(make_array(sample, 0), make_array(sample, 0, mode="probe"))


@given(
    st.sampled_from(["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64", "qint8"]),
    st.integers(-(2**63), 2**64),
    st.integers(0, 2**64),
    st.sampled_from(["replay", "probe"]),
)
def test_integers_stay_within_their_range(dtype: str, low: int, width: int, mode: str) -> None:
    limits = np.iinfo(STORAGE[dtype])
    first = min(max(low, limits.min), limits.max)
    last = min(first + width, limits.max)
    statistics = Statistics(None, None, float(first), float(last))
    array = make_array(sample_of(dtype, (500,), statistics), 0, mode=mode)
    # Beyond 2**53 the recorded bounds themselves are rounded.
    assert int(array.min()) >= min(first, int(float(first)))
    assert int(array.max()) <= max(last, int(float(last)))


def test_integers_reach_every_value_of_their_range() -> None:
    array = make_array(sample_of("int64", (10_000,), Statistics(4.5, 2.9, 0.0, 9.0)), 0)
    assert np.bincount(array).min() > 800


def test_integers_of_the_whole_range_are_spread_over_it() -> None:
    statistics = Statistics(None, None, -(2.0**63), 2.0**63)
    array = make_array(sample_of("int64", (10_000,), statistics), 0)
    assert np.mean(array < 0) == pytest.approx(0.5, abs=0.03)
    assert np.unique(array % 1000).size == 1000


def test_a_boolean_is_true_as_often_as_recorded() -> None:
    array = make_array(sample_of("bool", (100_000,), Statistics(0.25, 0.43, 0.0, 1.0)), 0)
    assert array.mean() == pytest.approx(0.25, abs=0.01)


@given(st.binary(min_size=24, max_size=24))
def test_stored_data_is_given_back_exactly(data: bytes) -> None:
    for dtype in ("int64", "float32", "bfloat16", "complex64", "float8_e5m2"):
        shape = (2, 24 // ITEM_SIZE_BYTES[dtype] // 2) if dtype != "int64" else (3,)
        size = math.prod(shape) * ITEM_SIZE_BYTES[dtype]
        for mode in ("replay", "probe"):
            array = make_array(sample_of(dtype, shape, data=data[:size]), 0, mode=mode)
            assert array.tobytes() == data[:size]
            assert array.shape == shape


def test_stored_data_follows_a_changed_size_axis_by_axis() -> None:
    data = np.arange(6, dtype=np.int64)
    sample = sample_of("int64", (2, "s0"), data=data.tobytes(), symbols=(Symbol("s0", 3),))
    assert make_array(sample, 0).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert make_array(sample, 0, sizes={"s0": 2}).tolist() == [[0, 1], [3, 4]]
    assert make_array(sample, 0, sizes={"s0": 4}).tolist() == [[0, 1, 2, 0], [3, 4, 5, 3]]


def test_a_symbol_is_its_size() -> None:
    symbol = Input("symbol", Value(), "s0")
    sample = Sample("a/b", "torch", "other", (symbol,), (), (), symbols=(Symbol("s0", 3),))
    assert make_array(sample, 0) == 3
    assert make_array(sample, 0, sizes={"s0": 8}) == 8


def test_seed_sample_and_name_each_change_the_elements() -> None:
    two = tuple(Input("input", Value("float32", (8,))) for _ in range(2))
    sample = Sample("a/b", "torch", "other", two, (), ())
    other = Sample("a/c", "torch", "other", two, (), ())
    drawn = [
        make_array(sample, 0),
        make_array(sample, 0, seed=1),
        make_array(sample, 1),
        make_array(other, 0),
    ]
    assert len({array.tobytes() for array in drawn}) == 4


def test_both_parts_of_a_complex_number_are_unrelated() -> None:
    array = make_array(sample_of("complex64", (2**16,), Statistics(0.0, 1.0)), 0)
    assert np.abs(array).std() < 1
    assert array.std() == pytest.approx(1, abs=0.02)
    assert abs(np.corrcoef(array.real, array.imag)[0, 1]) < 0.02


def test_a_mask_of_the_lowest_number_does_not_overflow() -> None:
    lowest = float(np.finfo(np.float32).min)
    statistics = Statistics(lowest / 2, -lowest / 2, lowest, 0.0)
    array = make_array(sample_of("float32", (1000,), statistics), 0)
    assert np.isfinite(array).all()


def test_statistics_that_are_not_finite_are_passed_over() -> None:
    statistics = Statistics(-math.inf, math.nan, -math.inf, 0.0)
    assert make_array(sample_of("float32", (4,), statistics), 0).tolist() == [0, 0, 0, 0]


def test_contradictions_are_named() -> None:
    sample = sample_of("float32", (4,), Statistics(0.0, 1.0, 2.0, 1.0))
    with pytest.raises(SampleError) as error:
        make_array(sample, 0)
    assert str(error.value) == (
        "Input `parameter_0` of `golden/tensor` has a minimum of 2.0 above its maximum of 1.0."
    )
    with pytest.raises(SampleError) as error:
        make_array(sample_of("float32", (4,), Statistics(0.0, -1.0)), 0)
    assert str(error.value) == (
        "Input `parameter_0` of `golden/tensor` has a negative standard deviation of -1.0."
    )


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(SampleError) as error:
        make_array(sample_of("float32", (4,)), 0, mode="random")  # type: ignore[arg-type]
    assert (
        str(error.value)
        == "The input mode 'random' does not exist (accepted: replay, fresh, probe)."
    )


def test_sizes_that_make_a_negative_shape_are_refused() -> None:
    sample = sample_of("float32", ("s0 - 2",), symbols=(Symbol("s0", 3),))
    with pytest.raises(SampleError) as error:
        make_array(sample, 0, sizes={"s0": 1})
    assert str(error.value) == (
        "Input `parameter_0` of `golden/tensor` has no shape under the sizes {'s0': 1}. "
        "Choose sizes that meet the sample's constraints."
    )
