"""Random images, sounds, spectrograms, features and texts with the structure of natural data.

White noise carries no signal: the average over an image or a sentence is the same for all draws, so
that networks with pooling return equal outputs for all of them. Natural data differ in contrast,
colour, pitch, loudness and topic, and these differences survive averages. Images and sounds are
sums of noise of all wavelengths with equal variance per octave, which has a power spectrum of 1/f^2
in two dimensions and of 1/f in one (Field 1987; Voss and Clarke 1975).

Only operations that IEEE 754 rounds correctly are used, so that elements are the same on every
machine.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .draws import Float32, fill_normals
from .elementary import exp
from .integers import natural, uniform

_STEP = 0x9E3779B97F4A7C15
_NUM_SHAPES = 6
_CONTRAST, _BRIGHTNESS = 0.6, 0.6
"""Standard deviations of the logarithm of the contrast, and of the brightness, over images."""

_FRAME = 256
"""Samples per frame of a sound, in which loudness and pitch change little."""
_NUM_HARMONICS = 6
_SILENCE = -0.4
"""Frames are silent if their normal is below this number, about a third of them."""


class _Source:
    """Independent random numbers, of which each call returns the next."""

    def __init__(self, key: int) -> None:
        self.key = key

    def next_key(self) -> int:
        self.key = (self.key + _STEP) % 2**64
        return self.key

    def normals(self, *shape: int) -> Float32:
        out = np.empty(math.prod(shape), np.float32)
        fill_normals(self.next_key(), 0, out)
        return out.reshape(shape)

    def lognormals(self, spread: float, *shape: int) -> Float32:
        """Return numbers with a mean square of 1."""
        return exp(self.normals(*shape) * np.float64(spread) - spread * spread).astype(np.float32)


def octaves(key: int, lead: tuple[int, ...], sizes: tuple[int, ...]) -> Float32:
    """Return independent fields of unit variance with an equal variance in each octave.

    >>> octaves(7, (2, 3), (64, 48)).shape
    (2, 3, 64, 48)
    """
    return _octaves(_Source(key), lead, sizes)


def _octaves(source: _Source, lead: tuple[int, ...], sizes: tuple[int, ...]) -> Float32:
    levels = max(1, (max(sizes) - 1).bit_length())
    field = np.zeros((*lead, *[2] * len(sizes)), np.float32)
    variance = 0.0
    for level in range(levels, -1, -1):
        shape = [-(-size // 2**level) + 1 for size in sizes]
        if level < levels:
            for axis in range(len(sizes)):
                field = _doubled(field, len(lead) + axis, shape[axis])
        field = field + source.normals(*lead, *shape)
        # The mean square of the two weights of linear interpolation, over all positions.
        variance += (2 / 3 + 1 / (3 * 4.0**level)) ** len(sizes)
    field = field[(..., *[slice(size) for size in sizes])]
    return field * np.float32(1 / math.sqrt(variance))


def _doubled(field: Float32, axis: int, size: int) -> Float32:
    """Return a field with the midpoints between neighbours inserted, cut to `size`."""
    field = np.moveaxis(field, axis, -1)
    result = np.empty((*field.shape[:-1], 2 * field.shape[-1] - 1), np.float32)
    result[..., ::2] = field
    result[..., 1::2] = (field[..., :-1] + field[..., 1:]) * np.float32(0.5)
    return np.moveaxis(result[..., :size], -1, axis)


def draw_images(key: int, shape: tuple[int, ...]) -> Float32:
    """Return images of a shape (…, channels, height, width), on average of zero mean and unit
    variance.

    An image is a 1/f^2 field with occluding wedges, whose borders are edges. Its contrast,
    brightness and colours differ from those of other images.
    """
    source = _Source(key)
    *lead, channels, height, width = shape
    count = math.prod(lead)
    grey = _octaves(source, (count, 1), (height, width)) * np.float32(0.9)
    field = grey + _octaves(source, (count, channels), (height, width)) * np.float32(0.44)
    rows = np.linspace(-1, 1, height).astype(np.float32)[:, None]
    columns = np.linspace(-1, 1, width).astype(np.float32)
    for _ in range(_NUM_SHAPES):
        sides = source.normals(6, count, 1, 1, 1)
        is_inside = sides[0] * rows + sides[1] * columns > sides[2]
        is_inside &= sides[3] * rows + sides[4] * columns > sides[5]
        inner = field * np.float32(0.7) + source.normals(count, channels, 1, 1) * np.float32(0.7)
        field = np.where(is_inside, inner, field)
    contrast = source.lognormals(_CONTRAST, count, 1, 1, 1)
    brightness = source.normals(count, 1, 1, 1) * np.float32(_BRIGHTNESS)
    tint = source.normals(count, channels, 1, 1) * np.float32(_BRIGHTNESS / 2)
    field = contrast * (field + brightness + tint)
    scale = np.float32(1 / math.sqrt(1 + 1.25 * _BRIGHTNESS**2))
    return _float32(field * scale, shape)


def draw_sounds(key: int, shape: tuple[int, ...]) -> Float32:
    """Return sounds of a shape (…, samples), on average of zero mean and unit variance.

    A sound consists of voiced frames (harmonics of a pitch that varies slowly, and 1/f noise) and
    of frames of near silence.
    """
    source = _Source(key)
    count, length = math.prod(shape[:-1]), shape[-1]
    num_frames = -(-length // _FRAME)
    frames = [_octaves(source, (count,), (num_frames,)) for _ in range(3)]
    loudness, pitch, voicing = (np.repeat(frame, _FRAME, axis=1)[:, :length] for frame in frames)
    gain = np.where(voicing > _SILENCE, np.float32(1), np.float32(0.03))
    gain = gain * np.clip(1 + np.float32(0.4) * loudness, 0.1, 3).astype(np.float32)
    # From 1 / 80 to 1 / 320 of a period per sample: 50 to 200 Hz at 16 kHz.
    base = exp(np.clip(source.normals(count, 1), -1, 1) * math.log(2)).astype(np.float64) / 160
    phase = np.cumsum(base * (1 + 0.1 * np.clip(pitch, -3, 3).astype(np.float64)), axis=1)
    sound = _octaves(source, (count,), (length,)) * np.float32(0.5)
    for harmonic in range(1, _NUM_HARMONICS + 1):
        strength = source.lognormals(0.5, count, 1) * np.float32(1 / harmonic)
        sound += strength * _wave(phase * harmonic)
    volume = source.lognormals(_CONTRAST, count, 1)
    # The variance of the harmonics is that of a wave (0.53) times the sum of 1 / h^2.
    variance = 0.25 + 0.53 * sum(1 / h**2 for h in range(1, _NUM_HARMONICS + 1))
    return _float32(volume * gain * sound * np.float32(1 / math.sqrt(variance)), shape)


def draw_spectrograms(key: int, shape: tuple[int, ...]) -> Float32:
    """Return logarithms of spectra, of a shape (…, frames, frequencies), on average of zero mean
    and unit variance.

    Energy falls with the frequency. Voiced frames have ridges at the multiples of a pitch, and
    silent frames have little energy.
    """
    source = _Source(key)
    count, (num_frames, num_bands) = math.prod(shape[:-2]), shape[-2:]
    loudness, pitch, voicing = (_octaves(source, (count,), (num_frames,)) for _ in range(3))
    bands = np.arange(num_bands, dtype=np.float64) / num_bands
    slope = np.float32(1.2) * (np.float32(0.5) - bands.astype(np.float32))
    turns = exp(source.normals(count, 1) * 0.4) * 12 * (1 + 0.1 * np.clip(pitch, -3, 3))
    ridges = _wave(turns[:, :, None] * bands) * np.float32(0.6)
    envelope = _octaves(source, (count, 1), (num_bands,)) * np.float32(0.6)
    level = (loudness * np.float32(0.4) + source.normals(count, 1) * np.float32(0.5))[:, :, None]
    noise = source.normals(count, num_frames, num_bands) * np.float32(0.3)
    is_voiced = (voicing > _SILENCE)[:, :, None]
    field = np.where(is_voiced, ridges + envelope + np.float32(0.5), np.float32(-1.0))
    return _float32((field + level + slope + noise) * np.float32(0.8), shape)


def draw_features(key: int, shape: tuple[int, ...]) -> Float32:
    """Return features of a shape (…, rows, columns), on average of zero mean and unit variance.

    Half of the variance belongs to whole rows and columns of an item, so that averages over either
    axis differ between items, and items differ in scale. Elements of a matrix are independent.
    """
    source = _Source(key)
    if len(shape) < 3:
        return source.normals(*shape)
    count, (num_rows, num_columns) = math.prod(shape[:-2]), shape[-2:]
    field = source.normals(count, num_rows, num_columns) * np.float32(math.sqrt(0.5))
    field += source.normals(count, 1, num_columns) * np.float32(0.5)
    field += source.normals(count, num_rows, 1) * np.float32(0.5)
    return _float32(source.lognormals(_CONTRAST / 2, count, 1, 1) * field, shape)


def draw_texts(key: int, shape: tuple[int, ...], low: int, high: int) -> npt.NDArray[np.int64]:
    """Return sequences of tokens from `low` to `high` with the structure of texts.

    Tokens have the frequencies of words in prose. Half of them are shifted by the topic of the
    text, sentences of 4 to 24 tokens end with one of the two most frequent tokens, and one token in
    four repeats one of the 16 tokens before it.

    >>> text = draw_texts(7, (2, 64), 0, 999)
    >>> text.shape, bool((text <= 1).any(axis=1).all())
    ((2, 64), True)
    """
    source = _Source(key)
    length = shape[-1] if shape else 1
    size = math.prod(shape)
    if not size:
        return np.zeros(shape, np.int64)
    count, width = size // length, high - low + 1
    tokens = natural(source.next_key(), size, 0, width - 1).reshape(count, length)
    topic = uniform(source.next_key(), count, 0, width - 1)[:, None]
    kind = uniform(source.next_key(), size, 0, 7).reshape(count, length)
    tokens = np.where(kind < 4, (tokens + topic) % width, tokens)
    ends = np.cumsum(
        uniform(source.next_key(), count * (length // 4 + 1), 4, 24).reshape(count, -1), axis=1
    )
    row, column = np.nonzero(ends <= length)
    tokens[row, ends[row, column] - 1] = kind[row, ends[row, column] - 1] % min(2, width)
    distance = uniform(source.next_key(), size, 1, 16).reshape(count, length)
    earlier = np.arange(length) - distance
    is_repeated = (kind % 4 == 3) & (earlier >= 0)
    repeated = np.take_along_axis(tokens, np.maximum(earlier, 0), axis=1)
    return (np.where(is_repeated, repeated, tokens) + low).reshape(shape)


def _float32(elements: npt.NDArray[np.floating], shape: tuple[int, ...]) -> Float32:
    return elements.astype(np.float32, copy=False).reshape(shape)


def _wave(turns: npt.NDArray[np.float64]) -> Float32:
    """Return a wave of period 1 made of parabolas, which is within 0.06 of a sine."""
    phase = (turns - np.floor(turns)).astype(np.float32) * np.float32(2) - np.float32(1)
    return np.float32(4) * phase * (np.float32(1) - np.abs(phase))
