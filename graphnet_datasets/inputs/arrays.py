"""Seeded generation of the elements of one input, from its recorded statistics."""

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
from .boxes import Boxes, find_boxes, order_corners
from .defaults import default_statistics
from .distributions import Distribution, Normals, as_normals, complete, draw, spread_constants
from .draws import BLOCK_SIZE
from .encoding import decode, narrow
from .offsets import find_offsets, put_in_order
from .redraws import draw_by_role, jitter, redraw
from .roles import find_roles
from .signals import SIGNAL_FLOATS, draw_by_signal, draw_floats
from .storage import STORAGE
from .terms import is_whole
from .weights import is_positive_weight

Mode: TypeAlias = Literal["replay", "fresh", "probe"]
MODES: tuple[str, ...] = get_args(Mode)

_WIDE = ("float32", "float64")

DRAWS_VERSION = 5
"""Version of the random draws. Within a version, the same sample, seed and mode give the same
elements.

1: running variances from a noncentral chi-square, integers uniform within their range.
2: log-normal variances, integers and masks by role, mode `fresh`. Other tensors (normally
distributed weights, stored elements) are as in 1.
3: ordered box corners (`find_boxes`). All else is as in 2.
4: normal tensors with at least 262,144 elements, except float64, are drawn from a scaled block,
which changes their last bits. All else is as in 3.
5: ordered corners of integer boxes, and sorted offsets (`find_offsets`). All else is as in 4.
Inputs with a `signal` were added within version 5, since no earlier row has one.
"""


def make_array(
    sample: Sample,
    index: int,
    seed: int = 0,
    mode: Mode = "replay",
    sizes: Mapping[str, int] | None = None,
) -> npt.NDArray:
    """Return the elements of input `index` of `sample`, row-major, in the dtype of `STORAGE`.

    The elements depend only on (seed, sample id, canonical input name), on every machine. In mode
    `replay` they have the recorded mean and standard deviation and stay within the recorded minimum
    and maximum; for a calibrated sample these are the calibrated statistics. Missing statistics are
    replaced with `default_statistics`, or for integers with the range that their role allows
    (`find_roles`). Stored data is returned unchanged; under `sizes` other than the captured sizes,
    each axis is truncated or repeated.

    Mode `fresh` simulates another call of the same model by changing all data inputs that may
    change. Stored integers and masks are drawn again according to their role, so that indices stay
    within bounds (`redraw`). Stored floats are perturbed slightly, and constant floats get a
    nonzero spread. Mode `probe` also gives constant weights a spread (zero biases, unit scales) and
    flips an eighth of constant booleans without a role. This exposes compilers that drop a bias or
    a mask.

    Inputs with a `signal` are drawn with the structure of natural data, equally in all modes.

    `sizes` maps the sample's symbols to integers (default: the sizes of the capture).

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
        raise SampleError(f"The input mode {mode!r} does not exist (accepted: {', '.join(MODES)}).")
    sample_input = sample.inputs[index]
    sizes = sample.hints if sizes is None else sizes
    if sample_input.role == "symbol":
        return np.array(evaluate(sample_input.source_name, sizes), np.int64)
    dtype = sample_input.value.dtype
    shape = sample.shape_of(sample_input.value, sizes)
    if dtype is None or shape is None or min(shape, default=0) < 0:
        raise SampleError(
            f"Input `{sample.input_names[index]}` of `{sample.id}` has no shape under the sizes "
            f"{dict(sizes)}. Choose sizes that meet the sample's constraints."
        )
    key = _key(seed, sample.id, sample.input_names[index])
    if sample_input.signal and (is_whole(dtype) or dtype in SIGNAL_FLOATS):
        return _with_signal(sample, index, key, shape, mode)
    is_fresh = mode != "replay" and sample_input.role == "input"
    if _is_stored(sample_input):
        stored = _stored(sample, sample_input, dtype, shape)
        if not is_fresh:
            return stored
        if is_whole(dtype):
            return _in_order(sample, index, redraw(key, stored, find_roles(sample)[index]), stored)
        moved = jitter(key, stored)
        if stored.dtype.kind == "f" and (boxes := find_boxes(sample).get(index)) is not None:
            order_corners(moved, boxes, 0.0, math.inf)
        return moved
    wanted = _recorded(sample, index, shape, dtype)
    if sample_input.role == "input" and is_whole(dtype):
        drawn = _draw_whole(sample, index, key, shape, wanted, mode)
        if drawn is not None:
            return _in_order(sample, index, drawn)
    wanted, is_positive = _in_mode(sample, index, wanted, mode)
    drawn = drawn_shape(sample_input, shape, sizes)
    elements = draw(key, math.prod(drawn), dtype, wanted, is_positive=is_positive)
    elements = elements.reshape(drawn)
    if is_whole(dtype):
        elements = _in_order(sample, index, elements)
    elif (boxes := find_boxes(sample).get(index)) is not None:
        elements = _boxes_in_order(elements, dtype, boxes, wanted)
    return np.broadcast_to(elements, shape) if drawn != shape else elements


def find_normals(
    sample: Sample,
    index: int,
    seed: int = 0,
    mode: Mode = "replay",
    sizes: Mapping[str, int] | None = None,
) -> tuple[Normals, tuple[int, ...], tuple[int, ...]] | None:
    """Return the parameters with which a device can generate input `index` exactly like
    `make_array`.

    The result is a tuple of the parameters, the drawn shape, and the shape to which the drawn
    tensor is expanded. Returns None unless the input is a large normal tensor in float32, float16
    or bfloat16; other inputs are generated on the host.

    Raises:
        SampleError: the statistics contradict themselves.

    >>> from graphnet_datasets.sample import Value
    >>> sample = Sample("example/identity", "torch", "other",
    ...     (Input("input", Value("float32", (2**10, 2**9))),), (), ())
    >>> normals, drawn, shape = find_normals(sample, 0)
    >>> normals.size, normals.addresses.shape, drawn == shape == (1024, 512)
    (524288, (2, 32), True)
    """
    sample_input = sample.inputs[index]
    sizes = sample.hints if sizes is None else sizes
    dtype, shape = sample_input.value.dtype, sample.shape_of(sample_input.value, sizes)
    is_made_otherwise = (
        sample_input.role in ("symbol", "scalar") or mode not in MODES or bool(sample_input.signal)
    )
    if is_made_otherwise or _is_stored(sample_input) or not dtype:
        return None
    if shape is None or min(shape, default=0) < 0:
        return None
    drawn = drawn_shape(sample_input, shape, sizes)
    if is_whole(dtype) or math.prod(drawn) < BLOCK_SIZE or index in find_boxes(sample):
        return None
    wanted, is_positive = _in_mode(sample, index, _recorded(sample, index, shape, dtype), mode)
    key = _key(seed, sample.id, sample.input_names[index])
    normals = as_normals(key, math.prod(drawn), dtype, wanted, is_positive=is_positive)
    return None if normals is None else (normals, drawn, shape)


def _with_signal(
    sample: Sample, index: int, key: int, shape: tuple[int, ...], mode: Mode
) -> npt.NDArray:
    """Return elements with the structure of natural data, equal in all modes."""
    sample_input = sample.inputs[index]
    dtype = sample_input.value.dtype or "bool"
    if is_whole(dtype):
        role = find_roles(sample)[index]
        if _is_stored(sample_input):
            example = _stored(sample, sample_input, dtype, shape)
        else:
            wanted = _recorded(sample, index, shape, dtype)
            example = _draw_whole(sample, index, key, shape, wanted, mode)
            if example is None:
                example = draw(key, math.prod(shape), dtype, wanted).reshape(shape)
        return draw_by_signal(key, example, sample_input.signal, role)
    wanted = _recorded(sample, index, shape, dtype)
    elements = draw_floats(key, shape, dtype, sample_input.signal, wanted)
    if dtype in _WIDE:
        return elements
    out = np.empty(elements.shape, STORAGE[dtype])
    narrow(elements.reshape(-1), dtype, out.reshape(-1))
    return out


def _is_stored(graph_input: Input) -> bool:
    """Return whether an input uses its stored elements instead of random ones."""
    return graph_input.data is not None and graph_input.calibrated is None


def _recorded(sample: Sample, index: int, shape: tuple[int, ...], dtype: str) -> Distribution:
    sample_input = sample.inputs[index]
    statistics = sample_input.calibrated or sample_input.statistics
    if statistics is None:
        statistics = default_statistics(sample_input.role, sample_input.source_name, shape, dtype)
    return complete(statistics, f"Input `{sample.input_names[index]}` of `{sample.id}`")


def _in_mode(
    sample: Sample, index: int, wanted: Distribution, mode: Mode
) -> tuple[Distribution, bool]:
    """Return the distribution adjusted to the mode, and whether its values must be positive."""
    sample_input = sample.inputs[index]
    dtype = sample_input.value.dtype or "bool"
    is_fresh = mode != "replay" and sample_input.role == "input"
    if mode == "probe" or (is_fresh and not is_whole(dtype)):
        wanted = spread_constants(wanted, dtype)
    return wanted, wanted.mean > 0 and is_positive_weight(sample, index, wanted.minimum)


def _in_order(
    sample: Sample, index: int, elements: npt.NDArray, stored: npt.NDArray | None = None
) -> npt.NDArray:
    """Return drawn integers with box corners and offsets put in order.

    Offsets keep the first and last value of `stored`, or the recorded range if nothing is stored.
    """
    if (boxes := find_boxes(sample).get(index)) is not None and elements.dtype.kind in "iu":
        order_corners(elements, boxes, 0.0, math.inf)
    elif index in find_offsets(sample) and elements.size:
        ends = elements if stored is None or not stored.size else stored
        low, high = ends.min(), ends.max()
        statistics = sample.inputs[index].statistics
        if (
            stored is None
            and statistics is not None
            and statistics.min is not None
            and statistics.max is not None
        ):
            low, high = math.ceil(statistics.min), math.floor(statistics.max)
        put_in_order(elements, low, high)
    return elements


def _boxes_in_order(
    elements: npt.NDArray, dtype: str, boxes: Boxes, wanted: Distribution
) -> npt.NDArray:
    """Return drawn boxes with their corners in order."""
    if dtype not in ("float16", "bfloat16", *_WIDE):
        return elements
    values = decode(elements, dtype)
    order_corners(values, boxes, wanted.std, wanted.maximum)
    if dtype in _WIDE:
        return values
    narrow(values.reshape(-1), dtype, elements.reshape(-1))
    return elements


def drawn_shape(
    graph_input: Input, shape: tuple[int, ...], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the shape that is drawn for an input, with size 1 for leading expanded axes.

    Expanded axes have a stride of 0, so that all their positions share memory. Stored elements, and
    integers drawn by role, are generated at the full shape.

    >>> from graphnet_datasets.sample import Value
    >>> drawn_shape(Input("input", Value("float32", (8, 3), (0, 1))), (8, 3), {})
    (1, 3)
    """
    stride = graph_input.value.stride
    if (
        stride is None
        or len(stride) != len(shape)
        or _is_stored(graph_input)
        or is_whole(graph_input.value.dtype or "")
    ):
        return shape
    cut = list(shape)
    for axis, step in enumerate(stride):
        if evaluate(step, sizes) != 0:
            break
        cut[axis] = min(shape[axis], 1)
    return tuple(cut)


def _draw_whole(
    sample: Sample, index: int, key: int, shape: tuple[int, ...], wanted: Distribution, mode: Mode
) -> npt.NDArray | None:
    """Return integers or booleans drawn by role, or None if the recorded statistics are
    sufficient."""
    sample_input = sample.inputs[index]
    dtype = sample_input.value.dtype or "bool"
    role = find_roles(sample).get(index)
    if role is None:
        return None
    statistics = sample_input.statistics
    if role.kind == "mask":
        if mode == "replay" or wanted.minimum < wanted.maximum:
            return None
        constant = draw(key, math.prod(shape), dtype, wanted).reshape(shape)
        return redraw(key, constant, role)
    has_moments = statistics is not None and statistics.mean is not None and statistics.is_measured
    if has_moments or dtype == "bool" or role.kind not in ("tokens", "segments", "indices"):
        return None
    return draw_by_role(key, shape, STORAGE[dtype], role)


def resize_elements(
    data: bytes, dtype: str, old_shape: tuple[int, ...], shape: tuple[int, ...]
) -> bytes:
    r"""Return the stored elements of a tensor at another shape, with each axis truncated or
    repeated.

    >>> resize_elements(bytes([1, 2, 3]), "uint8", (1, 3), (2, 4))
    b'\x01\x02\x03\x01\x01\x02\x03\x01'
    """
    if old_shape == shape:
        return data
    little_endian = np.dtype(STORAGE[dtype]).newbyteorder("<")
    elements = np.frombuffer(data, little_endian).reshape(old_shape)
    return np.ascontiguousarray(_resized(elements, shape)).tobytes()


def _stored(sample: Sample, graph_input: Input, dtype: str, shape: tuple[int, ...]) -> npt.NDArray:
    little_endian = np.dtype(STORAGE[dtype]).newbyteorder("<")
    data = np.frombuffer(graph_input.data or b"", little_endian)
    data = data.astype(STORAGE[dtype]).reshape(sample.shape_of(graph_input.value) or ())
    return _resized(data, shape)


def _resized(data: npt.NDArray, shape: tuple[int, ...]) -> npt.NDArray:
    if data.size == 0:
        return np.zeros(shape, data.dtype)
    # Truncate axes first, so that no intermediate array is larger than the result.
    for axis, length in sorted(
        enumerate(shape), key=lambda axis_length: axis_length[1] > data.shape[axis_length[0]]
    ):
        if data.shape[axis] != length:
            data = np.take(data, np.arange(length) % data.shape[axis], axis=axis)
    return data


def _key(seed: int, sample_id: str, name: str) -> int:
    text = f"{int(seed)}\0{sample_id}\0{name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
