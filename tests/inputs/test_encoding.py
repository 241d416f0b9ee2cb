"""bfloat16 and float8 against torch's own conversions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.inputs import encoding
from graphnet_datasets.inputs.distributions import Distribution, draw
from graphnet_datasets.inputs.encoding import FORMATS, encode, narrow

torch = pytest.importorskip("torch")


def numbers() -> np.ndarray:
    generator = np.random.default_rng(0)
    powers = 2.0 ** np.arange(-40, 18)
    drawn = generator.normal(size=50_000) * 10.0 ** generator.uniform(-8, 5, 50_000)
    # Powers, their ties in formats with 0 to 3 bits of mantissa, and both zeros.
    ties = np.concatenate([powers * factor for factor in (1, 1.5, 1.25, 1.125, 1.0625, 1.1875)])
    return np.concatenate([drawn, ties, -ties, [0.0, -0.0]]).astype(np.float32)


@pytest.mark.parametrize("dtype", [*FORMATS, "float8_e8m0fnu"])
def test_rounding_is_torchs(dtype: str) -> None:
    largest = FORMATS[dtype].largest if dtype in FORMATS else 2.0**127
    values = np.clip(numbers(), np.float32(-largest), np.float32(largest))
    if dtype == "float8_e8m0fnu":
        values = np.abs(values)
    expected = torch.from_numpy(values).to(getattr(torch, dtype))
    as_integers = torch.uint16 if dtype == "bfloat16" else torch.uint8
    assert np.array_equal(encode(values, dtype), expected.view(as_integers).numpy())


@pytest.mark.parametrize("dtype", list(FORMATS))
def test_beyond_the_largest_number_comes_the_largest_number(dtype: str) -> None:
    largest = FORMATS[dtype].largest
    with np.errstate(over="ignore"):
        beyond = np.array([largest * 1.01, -largest * 1.01, 3.4e38], np.float32)
    at = np.array([largest, -largest, largest], np.float32)
    assert np.array_equal(encode(beyond, dtype), encode(at, dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_with_and_without_torch_the_bits_are_the_same(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphnet_datasets.frameworks.torch import tensors

    largest = np.float32(65504.0 if dtype == "float16" else FORMATS[dtype].largest)
    generator = np.random.default_rng(1)
    # Every float16 there is, the ties between them, and what lies a bit beside those.
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves = np.sort(halves[np.isfinite(halves)])
    ties = (halves[1:] + halves[:-1]) / 2
    beside = (ties.view(np.uint32) + generator.integers(-1, 2, ties.size, np.int64)).astype("u4")
    values = np.concatenate([numbers(), halves, ties, beside.view(np.float32)])
    values = np.clip(np.nan_to_num(values), -largest, largest).astype(np.float32)
    expected = torch.from_numpy(values).to(getattr(torch, dtype)).view(torch.int16).numpy()
    for converter in (None, tensors._narrow):
        monkeypatch.setattr(encoding, "CONVERTER", converter)
        found = np.empty(values.size, np.float16 if dtype == "float16" else np.uint16)
        narrow(values, dtype, found)
        assert np.array_equal(found.view(np.int16), expected)


@settings(max_examples=40, deadline=None)
@given(
    dtype=st.sampled_from(["float16", "bfloat16"]),
    mean=st.floats(-2, 2),
    std=st.floats(0, 3),
    below=st.floats(0, 12),
    above=st.floats(0, 12),
    size=st.integers(1, 9000),
)
def test_clipping_and_rounding_commute(
    dtype: str, mean: float, std: float, below: float, above: float, size: int
) -> None:
    wanted = Distribution(mean, std, mean - below, mean + above)
    found = draw(3, size, dtype, wanted)
    expected = np.empty_like(found)
    narrow(draw(3, size, "float32", wanted), dtype, expected)
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("bound", [0.5, 2.4, 2.6, 4.0, 6.0])
def test_bounds_near_and_far_cut_the_same_elements_as_in_float32(dtype: str, bound: float) -> None:
    wanted = Distribution(0.01, 1.0, -bound, bound + 0.1)
    found = draw(5, 600_000, dtype, wanted)
    wide = draw(5, 600_000, "float32", wanted)
    expected = np.empty_like(found)
    narrow(wide, dtype, expected)
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))
    if bound <= 4:
        limits = np.array([wanted.minimum, wanted.maximum], np.float32)
        assert all((wide == limit).any() for limit in limits)
