"""Data inputs that are drawn with the structure of natural data.

Kinds are recognised by role, task, name and shape when a sample is calibrated, and then stored, so
that drawing does not depend on these rules. Inputs without a kind are drawn as before.
"""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import numpy.typing as npt

from ..sample import Input, Sample
from ..sample.vocabulary import Signal
from .boxes import find_boxes
from .distributions import Distribution, spread_constants
from .redraws import LARGEST_NUMBER, keep_sides, redraw
from .roles import InputRole, find_roles, stored_elements
from .structured import (
    draw_features,
    draw_images,
    draw_sounds,
    draw_spectrograms,
    draw_texts,
)
from .terms import is_whole

SIGNAL_FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Dtypes of floats that may be drawn with structure."""

_SOUND_NAME = re.compile(r"audio|wav|speech|spec(trogram)?\b|mel|input_(values|features)", re.I)
_MIN_SAMPLES = 1024
_MIN_BANDS = 16
_LEAST_RANK = {"image": 3, "spectrogram": 2, "sound": 1}
_MAX_TOKENS = 2**32
_MIN_SIDE, _MAX_CHANNELS = 4, 4
"""Smallest side of an image, and its maximum number of channels."""


def find_signals(sample: Sample) -> dict[int, Signal]:
    """Return the kinds of the data inputs that are drawn with structure, by index.

    Masks of floats, boxes, vectors, and matrices without stored elements have no kind.

    >>> from graphnet_datasets.sample import Value
    >>> image = Input("input", Value("float32", (1, 3, 32, 32)))
    >>> find_signals(Sample("example/identity", "torch", "cv", (image,), (), ()))
    {0: 'image'}
    """
    kinds: dict[int, Signal] = {}
    roles, boxes = find_roles(sample), find_boxes(sample)
    for index, sample_input in enumerate(sample.inputs):
        is_expanded = 0 in (sample_input.value.stride or ())
        if sample_input.role != "input" or index in boxes or is_expanded:
            continue
        if is_whole(sample_input.value.dtype or "bool"):
            kind = _kind_of_role(roles.get(index))
        elif sample_input.value.dtype in SIGNAL_FLOATS and not _is_mask(sample, sample_input):
            kind = _kind_of_floats(sample, sample_input)
        else:
            kind = ""
        if kind:
            kinds[index] = kind
    return kinds


def with_signals(sample: Sample) -> Sample:
    """Return a sample whose data inputs have the kinds of `find_signals`."""
    kinds = find_signals(sample)
    inputs = [
        dataclasses.replace(sample_input, signal=kinds.get(index, ""))
        for index, sample_input in enumerate(sample.inputs)
    ]
    return dataclasses.replace(sample, inputs=tuple(inputs))


def draw_floats(
    key: int, shape: tuple[int, ...], dtype: str, kind: Signal, wanted: Distribution
) -> npt.NDArray[np.floating]:
    """Return float32 (or float64) elements of a kind with about the wanted mean and deviation.

    Single images and sounds differ in both. Elements are within the wanted bounds.
    """
    if not math.prod(shape):
        return np.zeros(shape, np.float32)
    wanted = spread_constants(wanted, dtype)
    if len(shape) < _LEAST_RANK.get(kind, 0):
        kind = "features"
    if kind == "image":
        lead, axes = _image_axes(shape)
        arranged = draw_images(key, tuple(shape[axis] for axis in (*lead, *axes)))
        elements = arranged.transpose(np.argsort((*lead, *axes)))
    elif kind == "sound":
        elements = draw_sounds(key, shape)
    elif kind == "spectrogram":
        # Frequencies are fewer than frames.
        turned = (*shape[:-2], max(shape[-2:]), min(shape[-2:]))
        elements = draw_spectrograms(key, turned)
        elements = elements if turned == shape else elements.swapaxes(-1, -2)
    else:
        elements = draw_features(key, shape)
    work = np.float64 if dtype == "float64" else np.float32
    elements = elements.astype(work) * work(wanted.std) + work(wanted.mean)
    clipped = np.ascontiguousarray(elements.clip(wanted.minimum, wanted.maximum), work)
    return clipped.reshape(shape)


def draw_by_signal(key: int, stored: npt.NDArray, kind: Signal, role: InputRole) -> npt.NDArray:
    """Return integers or booleans of a kind for an array like `stored`."""
    if kind != "text" or role.kind != "tokens" or role.low is None or role.high is None:
        return redraw(key, stored, role)
    if not 0 <= role.high - role.low < _MAX_TOKENS:
        return redraw(key, stored, role)
    texts = draw_texts(key, stored.shape, role.low, role.high)
    return keep_sides(key, stored, texts, role).astype(stored.dtype)


def _kind_of_role(role: InputRole | None) -> Signal:
    if role is not None and role.kind == "tokens":
        return "text"
    return "padding" if role is not None and role.kind in ("mask", "lengths") else ""


def _kind_of_floats(sample: Sample, sample_input: Input) -> Signal:
    shape = sample.shape_of(sample_input.value) or ()
    if not math.prod(shape):
        return ""
    if sample.task == "audio" or _SOUND_NAME.search(sample_input.source_name):
        if len(shape) <= 3 and shape[-1:] >= (_MIN_SAMPLES,) and max(shape[1:-1], default=1) <= 2:
            return "sound"
        if len(shape) >= 3 and min(shape[-2:]) >= _MIN_BANDS:
            return "spectrogram"
    if len(shape) < 3:
        # Stored elements of another call would hardly differ.
        is_stored = sample_input.data is not None and len(shape) == 2 and min(shape) > 1
        return "features" if is_stored else ""
    channels, height, width = _image_axes(shape)[1]
    is_image = (
        (len(shape) >= 4 or shape[0] == 3)
        and min(shape[height], shape[width]) >= _MIN_SIDE
        and shape[channels] <= _MAX_CHANNELS
    )
    return "image" if is_image else "features"


def _image_axes(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """Return the remaining axes of images, and those of channels, height and width."""
    rank = len(shape)
    channels, height, width = rank - 3, rank - 2, rank - 1
    if shape[-1] <= _MAX_CHANNELS < shape[-3]:
        channels, height, width = rank - 1, rank - 3, rank - 2
    elif rank == 5 and shape[1] <= _MAX_CHANNELS < shape[2]:
        channels = 1  # channels before frames
    lead = tuple(axis for axis in range(rank) if axis not in (channels, height, width))
    return lead, (channels, height, width)


def _is_mask(sample: Sample, sample_input: Input) -> bool:
    """Return whether floats have two values, or very large or infinite ones, like a mask."""
    if sample_input.data is not None and sample_input.value.dtype in ("float32", "float64"):
        stored = stored_elements(sample, sample_input)
        if stored is not None and stored.size > 1 and np.unique(stored[..., :4096]).size == 2:
            return True
        if stored is not None and stored.size and not float(np.abs(stored).max()) < LARGEST_NUMBER:
            return True
    statistics = sample_input.statistics
    if statistics is None or statistics.min is None or statistics.max is None:
        return False
    if not max(abs(statistics.min), abs(statistics.max)) < LARGEST_NUMBER:
        return True
    if statistics.mean is None or statistics.std is None or statistics.max == statistics.min:
        return False
    share = (statistics.mean - statistics.min) / (statistics.max - statistics.min)
    two_valued = math.sqrt(max(share * (1 - share), 0.0)) * (statistics.max - statistics.min)
    return statistics.std > 0 and abs(statistics.std - two_valued) < 0.01 * two_valued
