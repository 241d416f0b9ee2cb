"""The pre-drawn blocks and their addresses."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys

import numpy as np
import pytest

from graphnet_datasets.inputs import draws, elementary

CHECKSUMS = {
    "normal": "9b63a734fc56fc5c2a78b477de55d00c",
    "bit": "47fcdc7e73dfc90594249dfdff005d91",
}
"""What the blocks hold on every machine; a change is a change of every dataset's inputs."""

PRINT_CHECKSUMS = """
import hashlib
from graphnet_datasets.inputs import draws, elementary
for block in (draws.normal_block(), draws.bit_block()):
    little = block.astype(block.dtype.newbyteorder("<"))
    print(hashlib.blake2b(little.tobytes(), digest_size=16).hexdigest())
"""


def normals(key: int, size: int, start: int = 0) -> np.ndarray:
    out = np.empty(size, np.float32)
    draws.fill_normals(key, start, out)
    return out


def test_blocks_are_equal_on_every_machine() -> None:
    draws.prepare_blocks()
    for name, block in (("normal", draws.normal_block()), ("bit", draws.bit_block())):
        little = block.astype(block.dtype.newbyteorder("<"))
        assert hashlib.blake2b(little.tobytes(), digest_size=16).hexdigest() == CHECKSUMS[name]


def test_blocks_do_not_depend_on_the_processor() -> None:
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512_SKX"}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRINT_CHECKSUMS],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == list(CHECKSUMS.values())


def test_quantiles_are_those_of_the_normal_distribution() -> None:
    quantiles = draws._normal_quantiles_of_upper_half(2**18)
    exact = statistics.NormalDist()
    for index in (*range(0, 2**17, 1009), 2**17 - 2, 2**17 - 1):
        expected = exact.inv_cdf(0.5 + (index + 0.5) / 2**18)
        assert quantiles[index] == pytest.approx(expected, rel=1e-13)


def test_logarithm_agrees_with_the_math_library() -> None:
    x = np.concatenate([np.geomspace(1e-300, 1e300, 1001), np.linspace(0.4, 1.6, 1001)])
    np.testing.assert_allclose(elementary.log(x), np.log(x), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
def test_each_entry_serves_once_per_role_and_epoch(key: int) -> None:
    addresses = np.array(draws._addresses(key, 0, 3 * draws.SEGMENTS_PER_EPOCH)).reshape(3, -1, 2)
    for epoch in addresses:
        for column in epoch.T:
            steps = np.diff(np.sort(column))
            assert (steps == draws.SEGMENT_SIZE).all()
    assert not (addresses[..., 0] == addresses[..., 1]).any()


def test_elements_have_the_moments_of_a_standard_normal() -> None:
    drawn = normals(3, 2**20).astype(np.float64)
    # Each epoch uses every entry twice, and the entries' mean is zero.
    assert abs(drawn.mean()) < 1e-9
    assert drawn.std() == pytest.approx(1, abs=2e-3)
    assert (drawn**3).mean() == pytest.approx(0, abs=0.02)
    assert (drawn**4).mean() == pytest.approx(3, abs=0.02)


def test_a_long_tensor_is_not_visibly_periodic() -> None:
    drawn = normals(5, 2**22).astype(np.float64)
    spectrum = np.fft.rfft(drawn, 2**23)
    correlation = np.fft.irfft(spectrum * spectrum.conj())[: 2**22] / 2**22
    assert correlation[0] == pytest.approx(1, abs=0.01)
    # Independent numbers would give about 5 / sqrt(2**22) = 0.0025.
    assert np.abs(correlation[1:]).max() < 0.05


def test_two_keys_give_unrelated_elements() -> None:
    first, second = normals(10, 2**18), normals(11, 2**18)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02


@pytest.mark.parametrize("size", [0, 1, draws.SEGMENT_SIZE - 1, 3 * draws.SEGMENT_SIZE + 7])
def test_filling_in_parts_gives_the_whole(size: int) -> None:
    whole = normals(9, size)
    parts = [
        normals(9, min(draws.SEGMENT_SIZE, size - start), start)
        for start in range(0, size, draws.SEGMENT_SIZE)
    ]
    assert np.array_equal(whole, np.concatenate([*parts, np.empty(0, np.float32)]))


def test_bits_are_balanced() -> None:
    out = np.empty(2**18, np.uint32)
    draws.fill_bits(1, 0, out)
    counts = [((out >> np.uint32(bit)) & np.uint32(1)).mean() for bit in range(32)]
    assert np.abs(np.array(counts) - 0.5).max() < 0.01


def test_blocks_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        draws.normal_block()[0] = 1
