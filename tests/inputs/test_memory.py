"""Memory that tensors share."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from graphnet_datasets.inputs import make_array, packed
from graphnet_datasets.inputs.memory import CHUNK_BYTES, FIRST_BYTES, empty
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
    bases = [id(array.base) for array in arrays if array.nbytes]
    assert len(set(bases)) < len(bases) / 4
    assert all(array.ctypes.data % 64 == 0 for array in arrays[20:] if array.nbytes > 512)


def test_few_bytes_and_very_many_lie_by_themselves() -> None:
    with packed():
        few = [empty(FIRST_BYTES // 8, np.uint8) for _ in range(8)]
        many = empty(CHUNK_BYTES + 1, np.uint8)
        packed_array, tiny = empty(1000, np.uint8), empty(8, np.uint8)
    outside = empty(1000, np.uint8)
    for array in (*few, many, tiny, outside):
        assert array.base is None or array.base.nbytes == array.nbytes
    assert packed_array.base is not None
    assert packed_array.base.nbytes > CHUNK_BYTES


def test_memory_is_given_back_with_the_last_array() -> None:
    with packed():
        empty(FIRST_BYTES, np.uint8)
        arrays = [empty(CHUNK_BYTES // 4, np.uint8) for _ in range(4)]
    chunk = weakref.ref(arrays[0].base)
    del arrays[1:]
    gc.collect()
    assert chunk() is not None
    arrays.clear()
    gc.collect()
    assert chunk() is None


def test_what_is_drawn_does_not_depend_on_where_it_lies() -> None:
    dtypes = ("float32", "float16", "bfloat16", "float64", "int64", "bool", "complex64")
    inputs = tuple(
        Input("parameter", Value(dtype, (300_000,)), statistics=Statistics(0.3, 0.46, -1.0, 1.0))
        for dtype in dtypes * 2
    )
    sample = Sample("example/packed", "torch", "other", inputs, (), ())
    apart = [make_array(sample, index) for index in range(len(inputs))]
    with packed():
        together = [make_array(sample, index) for index in range(len(inputs))]
    assert any(array.base is not None and array.base.nbytes > CHUNK_BYTES for array in together)
    for one, other in zip(apart, together, strict=True):
        assert one.tobytes() == other.tobytes()
