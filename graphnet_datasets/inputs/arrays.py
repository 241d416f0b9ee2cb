"""The elements of one input of a sample, seeded, drawn from the recorded statistics."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..errors import SampleError
from ..sample import Input, Sample
from ..sample.symbols import evaluate
from .defaults import default_statistics
from .distributions import complete, draw, spread_constants
from .storage import STORAGE

Mode: TypeAlias = Literal["replay", "probe"]
MODES: tuple[str, ...] = get_args(Mode)


def make_array(
    sample: Sample,
    index: int,
    seed: int = 0,
    mode: Mode = "replay",
    sizes: Mapping[str, int] | None = None,
) -> npt.NDArray:
    """Return the elements of input `index` of `sample`, row-major, in the dtype of `STORAGE`.

    The elements follow from (seed, sample id, canonical input name) alone, on every machine. In
    mode `replay` they have the recorded mean and standard deviation and stay within the recorded
    minimum and maximum; without a recorded value they have `default_statistics`. Mode `probe`
    differs for floating-point tensors that were constant (zero biases, unit norm scales), which
    are drawn around their constant, and for constant booleans, an eighth of which is flipped; so
    a compiler that drops a bias or a mask is found out. Integers stay within their recorded range
    in both modes, since they may be indices. Stored data is given back as it is; under other
    `sizes` than the captured ones each axis is cut or repeated.

    `sizes` maps the sample's symbols to integers (default: those it was captured with).

    Raises:
        SampleError: the mode is unknown, a symbol has no size, or the statistics contradict
            themselves.

    >>> from graphnet_datasets.sample import Value
    >>> sample = Sample("example/identity", "torch", "other",
    ...     (Input("input", Value("float32", (2, 3))),), (), ())
    >>> make_array(sample, 0).shape, bool((make_array(sample, 0) == make_array(sample, 0)).all())
    ((2, 3), True)
    """
    if mode not in MODES:
        raise SampleError(f"The input mode {mode!r} does not exist (accepted: replay, probe).")
    each = sample.inputs[index]
    sizes = sample.hints if sizes is None else sizes
    if each.role == "symbol":
        return np.array(evaluate(each.source_name, sizes), np.int64)
    dtype = each.value.dtype
    shape = sample.shape_of(each.value, sizes)
    if dtype is None or shape is None or min(shape, default=0) < 0:
        raise SampleError(
            f"Input `{sample.input_names[index]}` of `{sample.id}` has no shape under the sizes "
            f"{dict(sizes)}. Choose sizes that meet the sample's constraints."
        )
    if each.data is not None:
        return _stored(sample, each, dtype, shape)
    statistics = each.statistics or default_statistics(each.role, each.source_name, shape, dtype)
    where = f"Input `{sample.input_names[index]}` of `{sample.id}`"
    wanted = complete(statistics, where)
    if mode == "probe":
        wanted = spread_constants(wanted, dtype)
    key = _key(seed, sample.id, sample.input_names[index])
    return draw(key, math.prod(shape), dtype, wanted).reshape(shape)


def _stored(sample: Sample, each: Input, dtype: str, shape: tuple[int, ...]) -> npt.NDArray:
    little_endian = np.dtype(STORAGE[dtype]).newbyteorder("<")
    data = np.frombuffer(each.data or b"", little_endian)
    data = data.astype(STORAGE[dtype]).reshape(sample.shape_of(each.value) or ())
    if data.size == 0:
        return np.zeros(shape, data.dtype)
    for axis, length in enumerate(shape):
        if data.shape[axis] != length:
            data = np.take(data, np.arange(length) % data.shape[axis], axis=axis)
    return data


def _key(seed: int, sample_id: str, name: str) -> int:
    text = f"{int(seed)}\0{sample_id}\0{name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
