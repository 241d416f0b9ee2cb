"""Memory that tensors share."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from graphnet_datasets.inputs import make_array, packed
from graphnet_datasets.inputs.memory import FIRST_BYTES, empty
from graphnet_datasets.sample import Input, Sample, Statistics, Value


def test_arrays_lie_side_by_side_and_never_overlap() -> None:
    generator = np.random.default_rng(0)
    with packed():
        arrays = [
            empty(int(size), np.dtype(dtype))
            for size, dtype in zip(
                generator.integers(0, 400_000, 60), ["f4", "u2", "?", "c8", "i8"] * 12, strict=True
            )
        ]
    for number, array in enumerate(arrays):
        array.view(np.uint8)[:] = number
    assert all((array.view(np.uint8) == n).all() for n, array in enumerate(arrays))
    together = arrays[20:]
    assert all(array.ctypes.data % 64 == 0 for array in together if array.nbytes > 512)
    ends = sorted((array.ctypes.data, array.ctypes.data + array.nbytes) for array in together)
    assert sum(0 <= begin - end < 64 for (_, end), (begin, _) in itertools.pairwise(ends)) > 30


def test_few_bytes_lie_by_themselves() -> None:
    with packed():
        few = [empty(FIRST_BYTES // 8, np.uint8) for _ in range(8)]
        packed_array, tiny = empty(1000, np.uint8), empty(8, np.uint8)
    outside = empty(1000, np.uint8)
    assert all(_owner(array) is None for array in (*few, tiny, outside))
    assert _owner(packed_array) is not None


def _owner(array: npt.NDArray) -> object | None:
    """Return what other than an array of NumPy has the memory."""
    owner: object | None = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner


def test_draws_do_not_depend_on_their_memory() -> None:
    dtypes = ("float32", "float16", "bfloat16", "float64", "int64", "bool", "complex64")
    inputs = tuple(
        Input("parameter", Value(dtype, (300_000,)), statistics=Statistics(0.3, 0.46, -1.0, 1.0))
        for dtype in dtypes * 2
    )
    sample = Sample("example/packed", "torch", "other", inputs, (), ())
    apart = [make_array(sample, index) for index in range(len(inputs))]
    for _ in range(2):  # the second time where something else lay
        with packed():
            together = [make_array(sample, index) for index in range(len(inputs))]
        for one, other in zip(apart, together, strict=True):
            assert one.tobytes() == other.tobytes()
        for array in together:
            array.view(np.uint8)[:] = 0xA5
        del together, array
