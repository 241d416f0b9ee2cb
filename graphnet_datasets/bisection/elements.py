"""Elements of tensors, stored in files and in the inputs of samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..decoding import read_bytes
from ..inputs.storage import STORAGE
from ..sample import Input, Sample

FileOf: TypeAlias = "tuple[str, tuple[int, ...]]"
"""A file with the elements of a tensor in row-major order, and the tensor's shape."""


def with_elements(sample: Sample, elements: Sequence[FileOf | None]) -> Sample:
    """Return the sample with elements from files stored in its inputs."""
    inputs = tuple(
        item if place is None else with_stored(sample, item, place)
        for item, place in zip(sample.inputs, elements, strict=True)
    )
    return dataclasses.replace(sample, inputs=inputs)


def with_stored(sample: Sample, graph_input: Input, place: FileOf) -> Input:
    """Return an input with the elements of a file, cut to its own shape."""
    path, shape = place
    wanted = sample.shape_of(graph_input.value) or ()
    if wanted == shape:
        data = read_bytes(path)
    else:
        data = beginning_of(read_bytes(path), graph_input.value.dtype or "", shape, wanted)
    return dataclasses.replace(graph_input, data=data, calibrated=None)


def beginning_of(data: bytes, dtype: str, shape: Sequence[int], wanted: Sequence[int]) -> bytes:
    """Return the beginning of a tensor along each axis, in row-major order.

    >>> beginning_of(bytes(range(6)), "uint8", (2, 3), (2, 2))
    b'\\x00\\x01\\x03\\x04'
    """
    elements = np.frombuffer(data, np.dtype(STORAGE[dtype]).newbyteorder("<")).reshape(shape)
    return np.ascontiguousarray(elements[tuple(map(slice, wanted))]).tobytes()
