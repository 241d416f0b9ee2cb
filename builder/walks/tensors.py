"""Example inputs of transformers classes, derived from their signatures and configs."""

from __future__ import annotations

import functools
from typing import Any

from .workloads import tokens_of

DECODER_TOKENS = 64
SAMPLES = 160_000
"""Ten seconds at 16 kHz."""

CODED_SAMPLES = 48_000
"""Two seconds at 24 kHz, for codecs."""

FRAMES = 1000
"""Ten seconds of a spectrogram."""


def inputs_of(
    names: frozenset[str], required: frozenset[str], main: str, class_name: str, config: Any
) -> dict[str, str]:
    """Return the inputs of a class by name, in the form of a catalog after `name=`.

    `names` are the parameters of `forward`, `required` those without a default, `main` is the one
    that the class calls its main input. Empty if nothing is known about the main input or a
    required one.
    """
    inputs: dict[str, str] = {}
    if main == "input_ids" or ("input_ids" in names and _has_vocabulary(config)):
        inputs |= _text(names, class_name, config)
    if main == "pixel_values_videos":
        size = _first(config, ("image_size", "crop_size"), 224)
        frames = _first(config, ("num_frames", "frames_per_clip"), 16)
        inputs["pixel_values_videos"] = f"normal(1,{frames},3,{_pair(size)})"
    elif main == "pixel_values" or "pixel_values" in names:
        inputs["pixel_values"] = _pixels(class_name, config)
    if main == "input_values":
        inputs["input_values"] = _waveform(config)
    if main == "input_features" or "input_features" in names:
        inputs["input_features"] = _features(config)
    if main == "past_values":
        length = _first(config, ("context_length", "prediction_length"), 64)
        channels = _first(config, ("num_input_channels", "input_size"), 1)
        inputs["past_values"] = f"normal(2,{length},{channels})"
    if _is_encoder_decoder(config) and "decoder_input_ids" in names:
        inputs["decoder_input_ids"] = f"ids(1,{DECODER_TOKENS}; {_low_ids(config)})"
    return inputs if main in inputs and required <= inputs.keys() else {}


def _text(names: frozenset[str], class_name: str, config: Any) -> dict[str, str]:
    is_language_model = class_name.endswith(("ForCausalLM", "LMHeadModel"))
    tokens = tokens_of(class_name, positions_of(config), is_language_model=is_language_model)
    shape = f"1,4,{tokens}" if "MultipleChoice" in class_name else f"1,{tokens}"
    inputs = {"input_ids": f"ids({shape}; {_low_ids(config)})"}
    if "bbox" in names:
        inputs["bbox"] = f"boxes({shape},4; 500)"
    if _takes_mask(config) or names & {"pixel_values", "input_features"}:
        inputs["attention_mask"] = f"full({shape}; 1)"
    return {name: text for name, text in inputs.items() if name in names}


def positions_of(config: Any) -> int | None:
    """Return the maximum number of tokens of a config, or None if unknown."""
    positions = getattr(_text_config(config), "max_position_embeddings", None)
    return positions if isinstance(positions, int) else None


def _takes_mask(config: Any) -> bool:
    """Return whether a mask is passed: decoders without a mask only mask future tokens."""
    is_decoder_only = config.model_type in _causal_types() and not hasattr(config, "is_decoder")
    return not is_decoder_only


@functools.cache
def _causal_types() -> frozenset[str]:
    from transformers.models.auto import modeling_auto

    names = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return frozenset([*names, *(f"{name}_text" for name in names)])


def _low_ids(config: Any) -> str:
    """Return the range of ordinary tokens: special tokens are at the ends of vocabularies."""
    vocabulary = _vocabulary(config)
    return f"10, {min(vocabulary, 2000)}" if vocabulary > 20 else f"1, {max(2, vocabulary)}"


def _vocabulary(config: Any) -> int:
    for part in (_text_config(config), config, *_parts(config)):
        vocabulary = getattr(part, "vocab_size", None)
        if isinstance(vocabulary, int) and vocabulary > 1:
            return vocabulary
    return 1000


def _text_config(config: Any) -> Any:
    try:
        return config.get_text_config()
    except ValueError:  # several texts, of which none is the main text
        return config


def _has_vocabulary(config: Any) -> bool:
    return any(isinstance(getattr(part, "vocab_size", None), int) for part in _parts(config))


def _pixels(class_name: str, config: Any) -> str:
    size = _first(config, ("image_size", "img_size", "input_size", "crop_size"), 224)
    channels = _first(config, ("num_channels", "in_channels", "in_chans"), 3)
    if channels not in (1, 3, 4):
        channels = 3
    frames = _first(config, ("num_frames",), 0)
    if frames and ("Video" in class_name or "TimeSformer" in class_name or "Vivit" in class_name):
        return f"normal(1,{frames},{channels},{_pair(size)})"
    return f"normal(1,{channels},{_pair(size)})"


def _pair(size: Any) -> str:
    if isinstance(size, list | tuple):
        return f"{size[0]},{size[-1]}"
    return f"{size},{size}"


def _waveform(config: Any) -> str:
    bins, length = getattr(config, "num_mel_bins", None), getattr(config, "max_length", None)
    if bins and length and getattr(config, "patch_size", None):
        return f"normal(1,{length},{bins})"
    if any("codebook" in name or "audio_channels" in name for name in vars(config)):
        return f"normal(1,{getattr(config, 'audio_channels', 1)},{CODED_SAMPLES})"
    return f"normal(1,{SAMPLES})"


def _features(config: Any) -> str:
    if width := getattr(config, "feature_projection_input_dim", None):
        return f"normal(1,{FRAMES // 2},{width})"
    if width := getattr(config, "input_feat_per_channel", None):
        return f"normal(1,{FRAMES},{width})"
    bins = _first(config, ("num_mel_bins", "input_feat_size", "n_mels", "input_dim"), 80)
    positions = _first(config, ("max_source_positions",), 0)
    return f"normal(1,{bins},{2 * positions})" if positions else f"normal(1,{FRAMES},{bins})"


def _first(config: Any, names: tuple[str, ...], default: Any) -> Any:
    for part in _parts(config):
        for name in names:
            value = getattr(part, name, None)
            if value and not isinstance(value, bool | dict | str):
                return value
    return default


def _parts(config: Any) -> list[Any]:
    """Return a config and its nested configs, images and audio before text."""
    from transformers import PreTrainedConfig

    inner = [
        (key, value) for key, value in vars(config).items() if isinstance(value, PreTrainedConfig)
    ]
    inner.sort(key=lambda pair: "text" in pair[0] or "decoder" in pair[0])
    return [config, *(part for _, value in inner for part in _parts(value))]


def _is_encoder_decoder(config: Any) -> bool:
    return bool(getattr(config, "is_encoder_decoder", False))
