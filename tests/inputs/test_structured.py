"""Draws with the structure of natural data: shapes, spectra, ranges, and equal bits everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from graphnet_datasets import Sample
from graphnet_datasets.errors import SampleError
from graphnet_datasets.inputs import make_array
from graphnet_datasets.inputs.signals import find_signals, with_signals
from graphnet_datasets.inputs.structured import (
    draw_features,
    draw_images,
    draw_sounds,
    draw_spectrograms,
    draw_texts,
    octaves,
)
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.sample.vocabulary import SIGNALS

GOLDEN = {
    "image": "30227a4bb55aff43",
    "sound": "6ca4c965b5b50e01",
    "spectrogram": "2b5005b7bfb4f9aa",
    "features": "0365d50766340b4d",
    "text": "ad4dcef3defad9eb",
    "older": "644a784eb93043e2",
}
"""Digests of draws: they are the same on every machine and never change."""

DRAWS = {
    "image": (draw_images, (2, 3, 40, 56)),
    "sound": (draw_sounds, (2, 3000)),
    "spectrogram": (draw_spectrograms, (2, 50, 40)),
    "features": (draw_features, (3, 20, 16)),
}


def digest(array: np.ndarray) -> str:
    little = array.astype(array.dtype.newbyteorder("<"))
    return hashlib.blake2b(little.tobytes(), digest_size=8).hexdigest()


@pytest.mark.parametrize("kind", DRAWS)
def test_draws_are_the_same_everywhere_and_differ_between_keys(kind: str) -> None:
    draw, shape = DRAWS[kind]
    array = draw(7, shape)
    assert (array.shape, array.dtype) == (shape, np.float32)
    assert digest(array) == GOLDEN[kind]
    assert not np.array_equal(array, draw(8, shape))


@pytest.mark.parametrize("kind", DRAWS)
def test_draws_have_about_zero_mean_and_unit_variance(kind: str) -> None:
    draw, shape = DRAWS[kind]
    arrays = np.stack([draw(key, shape) for key in range(60)])
    assert abs(arrays.mean()) < 0.25
    assert 0.6 < np.square(arrays).mean() < 1.5


def slope(power: np.ndarray, first: int, last: int) -> float:
    frequencies = np.arange(first, last)
    return float(np.polyfit(np.log(frequencies), np.log(power[first:last]), 1)[0])


def test_spectra_fall_as_those_of_natural_images_and_sounds() -> None:
    images = draw_images(5, (64, 1, 128, 128))[:, 0]
    images = images - images.mean((1, 2), keepdims=True)
    power = np.square(np.abs(np.fft.fft2(images))).mean(0)
    assert slope(power[0], 2, 40) == pytest.approx(-2, abs=0.3)
    assert slope(power[:, 0], 2, 40) == pytest.approx(-2, abs=0.3)
    noise = octaves(5, (200,), (4096,))
    assert slope(np.square(np.abs(np.fft.rfft(noise))).mean(0), 4, 1000) == pytest.approx(
        -1, abs=0.15
    )


def test_images_differ_in_contrast_and_have_edges() -> None:
    images = draw_images(5, (200, 1, 64, 64))[:, 0]
    contrasts = images.std((1, 2))
    assert np.quantile(contrasts, 0.9) > 2.5 * np.quantile(contrasts, 0.1)
    steps = np.diff(images, axis=2) / contrasts[:, None, None]
    kurtosis = (steps**4).mean() / np.square(np.square(steps).mean())
    assert kurtosis > 4, "a normal distribution has 3"


def test_sounds_have_silence_and_a_pitch() -> None:
    sounds = draw_sounds(3, (20, 16384))
    frames = sounds.reshape(20, -1, 256).std(axis=2)
    loud = np.median(frames, axis=1, keepdims=True)
    assert 0.1 < (frames < 0.2 * loud).mean() < 0.6
    spectra = np.square(np.abs(np.fft.rfft(sounds, axis=1)))
    # Periods of 80 to 320 samples.
    voiced = spectra[:, 16384 // 400 : 16384 // 60].sum(axis=1)
    assert np.median(voiced / spectra[:, 1:].sum(axis=1)) > 0.3


def test_texts_repeat_words_end_sentences_and_differ_in_topic() -> None:
    texts = draw_texts(9, (40, 512), 10, 30_009)
    assert texts.min() >= 10
    assert texts.max() <= 30_009
    distinct = np.array([len(set(text)) for text in texts.tolist()])
    assert (distinct < 400).all()
    assert (distinct > 60).all()
    assert (np.isin(texts, (10, 11)).sum(axis=1) >= 512 // 24).all()
    ranks = np.bincount((texts - 10).reshape(-1), minlength=30_000)
    assert ranks[:100].sum() > 0.2 * texts.size
    topics = [set(text) for text in texts.tolist()]
    shared = [len(topics[0] & topic) / len(topics[0]) for topic in topics[1:]]
    assert np.mean(shared) < 0.5
    assert digest(draw_texts(9, (2, 33), 0, 99)) == GOLDEN["text"]


def sample_of(*inputs: Input, task: str = "cv", ops: tuple[Op, ...] = ()) -> Sample:
    return Sample("signal/sample", "torch", task, inputs, ops, ())  # type: ignore[arg-type]


def floats(*shape: int, dtype: str = "float32", name: str = "", std: float = 0.3) -> Input:
    return Input("input", Value(dtype, shape), name, statistics=Statistics(0.5, std, 0.0, 1.0))


@pytest.mark.parametrize(
    ("sample_input", "task", "kind"),
    [
        (floats(2, 3, 32, 48), "cv", "image"),
        (floats(2, 32, 48, 3), "cv", "image"),
        (floats(1, 3, 8, 16, 16), "cv", "image"),
        (floats(1, 8, 3, 16, 16), "cv", "image"),
        (floats(3, 64, 64), "cv", "image"),
        (floats(1, 64, 7, 7), "cv", "features"),
        (floats(1, 16000), "audio", "sound"),
        (floats(1, 80, 300), "audio", "spectrogram"),
        (floats(2, 16, 64), "nlp", "features"),
        (floats(4, 16), "other", ""),
        (floats(1, 3, 32, 32, std=0.5), "cv", ""),  # zeros and ones
        (Input("input", Value("float32", (1, 1, 8, 8)),
               statistics=Statistics(-1e38, 1e38, -3.4e38, 0.0)), "nlp", ""),
        (Input("parameter", Value("float32", (1, 3, 8, 8))), "cv", ""),
        (Input("input", Value("int64", (2, 3, 8, 8))), "cv", ""),
    ],
)  # fmt: skip
def test_kinds_follow_from_role_task_and_shape(sample_input: Input, task: str, kind: str) -> None:
    sample = sample_of(sample_input, task=task)
    assert find_signals(sample).get(0, "") == kind
    drawn = make_array(with_signals(sample), 0)
    assert drawn.shape == sample_input.value.shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_images_keep_their_statistics_roughly_and_their_bounds(dtype: str) -> None:
    sample = with_signals(sample_of(floats(8, 3, 64, 64, dtype=dtype)))
    first, second = make_array(sample, 0, 1), make_array(sample, 0, 2, "fresh")
    assert first.flags.c_contiguous
    assert not np.array_equal(first, second)
    assert np.array_equal(second, make_array(sample, 0, 2)), "as in all modes"
    if dtype != "bfloat16":
        assert 0 <= first.min() < first.max() <= 1
        assert first.mean(dtype=np.float64) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32", "float8_e5m2", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 4), (2, 3, 4)])
@pytest.mark.parametrize("kind", SIGNALS[1:])
def test_any_kind_of_a_row_draws_any_tensor(kind: str, shape: tuple[int, ...], dtype: str) -> None:
    value = Input("input", Value(dtype, shape), signal=kind)  # type: ignore[arg-type]
    assert make_array(sample_of(value), 0).shape == shape


def test_signals_of_weights_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(SampleError, match="signal 'smell'"):
        sample_of(Input("input", Value("float32", (2,)), signal="smell"))  # type: ignore[arg-type]
    with pytest.raises(SampleError, match="role 'parameter' and signal 'image'"):
        sample_of(Input("parameter", Value("float32", (2,)), signal="image"))


def test_tokens_stay_within_their_table_and_padding_remains() -> None:
    stored = np.array([[5, 9, 3, 4, 8, 2, 0, 0]] * 2, np.int64)
    look_up = Op("torch.nn.functional.embedding", (Ref(0), Ref(1)))
    pads = Op("operator.eq", (Ref(0), 0))
    sample = with_signals(
        sample_of(
            Input("input", Value("int64", (2, 8)), data=stored.tobytes()),
            Input("parameter", Value("float32", (50, 4))),
            ops=(look_up, pads),
            task="nlp",
        )
    )
    assert sample.inputs[0].signal == "text"
    drawn = make_array(sample, 0, 3)
    assert (drawn[:, 6:] == 0).all()
    assert 0 < drawn[:, :6].min() <= drawn.max() < 50
    assert not np.array_equal(drawn, make_array(sample, 0, 4))


def test_masks_hide_the_ends_of_sequences() -> None:
    mask = Input("input", Value("int64", (4, 32)), data=np.ones((4, 32), np.int64).tobytes())
    floats_of = Op("torch.Tensor.to", (Ref(0),))
    sample = with_signals(sample_of(mask, ops=(floats_of,), task="nlp"))
    assert sample.inputs[0].signal == "padding"
    drawn = make_array(sample, 0, 5)
    lengths = drawn.sum(axis=1)
    assert lengths[0] == 32
    assert (np.diff(drawn, axis=1) <= 0).all()
    assert lengths.min() >= 24


def test_a_row_keeps_its_signals_and_an_older_row_draws_as_before() -> None:
    plain = sample_of(floats(2, 3, 16, 16))
    row = plain.to_row()
    assert row["signals"] is None
    older = {name: value for name, value in row.items() if name != "signals"}
    assert Sample.from_row(older) == plain
    assert digest(make_array(Sample.from_row(older), 0, 7)) == GOLDEN["older"]
    fitted = with_signals(plain)
    assert Sample.from_row(fitted.to_row()) == fitted
    assert digest(make_array(fitted, 0, 7)) != GOLDEN["older"]
