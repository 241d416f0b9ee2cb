"""Walks the auto-model mappings of transformers: an entry for every class with a config.

Exceptions for single models are in `builder/walks/transformers.txt`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import zlib
from collections.abc import Iterator
from typing import Any

from ..catalog import parse_overrides
from ..libraries.transformers import preload
from ..shrinking import EXPERTS, configs
from .overrides import Override, Overrides, read_overrides
from .sizes import read_checkpoints, read_sizes, replaced
from .tensors import inputs_of, positions_of
from .workloads import Workload, batched, lengthened, tokens_of, workload_of

_TASKS = (
    ("other", ("TIME_SERIES", "DECISION")),
    ("multimodal", ("IMAGE_TEXT", "VISUAL_QUESTION", "DOCUMENT_QUESTION", "ZERO_SHOT")),
)
"""Tasks that do not follow from the inputs, by parts of the names of mappings."""

_PICTURES = (
    "pixel_values", "pixel_values_videos", "image_pixel_values", "bbox", "flattened_patches",
)  # fmt: skip
_SOUNDS = ("input_values", "input_features")

_SCIENTIFIC = ("esm", "evolla")
"""Types of models of proteins."""

CONTEXTS = (128, 256, 512)
"""Tokens in the cache that a decode step starts from."""

_TEXT = ("input_ids", "attention_mask")

_CONSTANT_BATCH = ("TimesFm",)
"""Classes that take the batch size as a number."""

CACHES = ("past_key_values", "cache_params")
"""Names of the argument for the cache of earlier steps. Models without it have no decode step."""

SIZES = read_sizes()
"""Published sizes besides that of the default config, by type of model."""

CHECKPOINTS = read_checkpoints()
"""Overrides of released checkpoints for types with an unpublished default config."""

_IMAGE_TOKENS = ("image_token_id", "image_token_index", "audio_token_id", "audio_token_index")


@dataclasses.dataclass(frozen=True)
class Walked:
    """A class with its mappings, its parameters and the config that it is built from."""

    name: str
    mappings: tuple[str, ...]
    model_type: str
    parameters: frozenset[str]
    required: frozenset[str]
    main: str
    config: Any


def walk() -> Iterator[str]:
    """Yield catalog lines: every class at its default size, decode steps, variants, other sizes."""
    preload()
    overrides = read_overrides("transformers")
    walked = list(_classes(overrides))
    entries = [(model, *_describe(model, _override(model, overrides))) for model in walked]
    entries = [entry for entry in entries if entry[2]]
    for model, line_overrides, inputs in entries:
        yield _line(
            model,
            line_overrides,
            inputs,
            workload_of(model.name, is_language_model=_has_steps(model)),
        )
    for model, line_overrides, inputs in entries:
        cache = next((name for name in CACHES if name in model.parameters), None)
        text = {name: inputs[name] for name in _TEXT if name in inputs}
        is_prompt = inputs.get("input_ids", "").startswith("prompt(")
        if cache and _has_steps(model) and (text == inputs or is_prompt):
            if hasattr(model.config, "is_decoder"):
                line_overrides = f"{line_overrides} is_decoder=True"
            context = _context(model.name, positions_of(model.config))
            step = _step(context, text) | {cache: f"cache(1,{context})"}
            workload = workload_of(f"{model.name}-decode", is_language_model=True)
            if workload.mode == "train":  # decode steps are not used in training
                workload = Workload()
            yield _line(model, line_overrides, step, workload, "-decode")
    bases = [entry for entry in entries if "MODEL_MAPPING_NAMES" in entry[0].mappings]
    for model, line_overrides, inputs in bases:
        language = _has_steps(model)
        vision = _line(
            model, line_overrides, inputs, workload_of(model.name, is_language_model=language)
        )
        for workload in (workload_of(f"{model.name}-variant"), Workload(8, mode="train")):
            line = _line(model, line_overrides, inputs, workload)
            if line.partition(" ")[0] != vision.partition(" ")[0]:
                yield line
                break
    for model, line_overrides, inputs in entries:
        yield from _larger(model, line_overrides, inputs)


def _larger(walked: Walked, line_overrides: str, inputs: dict[str, str]) -> Iterator[str]:
    """Yield the other published sizes of an image model, each under two workloads."""
    if _task(walked, inputs) != "cv":
        return
    for size in SIZES.get(walked.model_type, ()):
        name = f"{walked.name}-{size.name}"
        lines = {
            line.partition(" ")[0]: line
            for ending in ("", "-variant")
            for line in [
                _line(
                    walked,
                    f"{line_overrides} {size.overrides}",
                    inputs,
                    workload_of(f"{name}{ending}"),
                    f"-{size.name}",
                )
            ]
        }
        yield from lines.values()


def _context(name: str, positions: int | None = None) -> int:
    """Return the number of cached tokens; the next token has a further position.

    Up to two positions may precede that of the first token, for example for padding.

    >>> [_context("BertLMHeadModel", positions) for positions in (4096, 515, 514, 512)]
    [512, 512, 256, 256]
    """
    contexts = [
        context
        for context in CONTEXTS
        if positions is None or positions < 4 or context + 2 < positions
    ] or [CONTEXTS[0]]
    return min(CONTEXTS[zlib.crc32(name.encode()) % len(CONTEXTS)], max(contexts))


def _step(context: int, inputs: dict[str, str]) -> dict[str, str]:
    """Return the inputs of one more token; a mask covers the cache and the token.

    >>> _step(128, {"input_ids": "prompt(1,320; 10, 2000, 9, 256)"})
    {'input_ids': 'ids(1,1; 10, 2000)'}
    """
    lengths = {"input_ids": 1, "attention_mask": context + 1}
    prompt = r"\Aprompt\((.*?;.*?,.*?),.*"  # images are in the cache
    inputs = {name: re.sub(prompt, r"ids(\1)", text) for name, text in inputs.items()}
    return {
        name: re.sub(r"\A(\w+\(\d+),\d+", rf"\1,{lengths[name]}", text)
        for name, text in inputs.items()
    }


def _classes(overrides: Overrides) -> Iterator[Walked]:
    import transformers
    from transformers.models.auto import modeling_auto

    sizes: dict[str, dict[str, list[str]]] = {}
    for mapping in sorted(vars(modeling_auto)):
        if mapping.startswith("MODEL_") and mapping.endswith("MAPPING_NAMES"):
            for model_type, names in getattr(modeling_auto, mapping).items():
                for name in [names] if isinstance(names, str) else names:
                    sizes.setdefault(name, {}).setdefault(mapping, []).append(model_type)
    for name in sorted(sizes):
        if name in overrides and overrides[name].is_left_out:
            continue
        try:
            model_class: Any = getattr(transformers, name)
            config = _config(model_class.config_class)
            signature = inspect.signature(model_class.forward)
        except Exception as error:  # a config without defaults, or a missing dependency
            print(f"transformers/{name} has no entry: {error!r:.200}", file=sys.stderr)
            continue
        yield Walked(
            name,
            tuple(sizes[name]),
            config.model_type,
            frozenset(signature.parameters),
            frozenset(_required(signature)),
            str(model_class.main_input_name),
            config,
        )


def _config(config_class: Any) -> Any:
    return config_class(**parse_overrides(CHECKPOINTS.get(config_class.model_type, "")))


def _required(signature: inspect.Signature) -> Iterator[str]:
    for name, parameter in signature.parameters.items():
        is_needed = parameter.default is parameter.empty and name != "self"
        if is_needed and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            yield name


def _override(walked: Walked, overrides: Overrides) -> Override:
    nothing = Override("", "", "")
    by_type, by_name = overrides.get(walked.model_type, nothing), overrides.get(walked.name)
    return by_name or by_type


def _describe(walked: Walked, override: Override) -> tuple[str, dict[str, str]]:
    """Return the overrides and the inputs of a class's entry; no inputs if it has no entry."""
    if override.is_left_out:
        return "", {}
    checkpoint = CHECKPOINTS.get(walked.model_type, "")
    line_overrides = replaced(checkpoint, override.overrides)
    if override.inputs:
        pairs = (part.partition("=") for part in _split(override.inputs))
        positions = positions_of(walked.config)
        tokens = tokens_of(walked.name, positions, is_language_model=_has_steps(walked))
        return line_overrides, lengthened({name: text for name, _, text in pairs}, tokens)
    if any(getattr(walked.config, name, None) is not None for name in _IMAGE_TOKENS):
        return line_overrides, _of_text(walked)  # no config has the number of tokens of an image
    return line_overrides, inputs_of(
        walked.parameters, walked.required, walked.main, walked.name, walked.config
    )


def _of_text(walked: Walked) -> dict[str, str]:
    """Return the inputs of a model of several kinds of data that is called with text alone."""
    inputs = inputs_of(walked.parameters, walked.required, walked.main, walked.name, walked.config)
    is_text = walked.main == "input_ids"
    names = ("input_ids", "decoder_input_ids")
    return {name: inputs[name] for name in names if is_text and name in inputs}


def _has_experts(config: Any) -> bool:
    return any(
        isinstance(vars(subconfig).get(name), int)
        for subconfig in configs(config)
        for name in EXPERTS
    )


def _gives_experts(line_overrides: str) -> bool:
    """Return whether the overrides add experts to a config without experts."""
    return any(f"{name}=" in line_overrides for name in EXPERTS)


def _split(text: str) -> list[str]:
    parts = text.split(") ")
    return [part if part.endswith(")") else f"{part})" for part in (p.strip() for p in parts)]


def _has_steps(walked: Walked) -> bool:
    return "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES" in walked.mappings


def _task(walked: Walked, inputs: dict[str, str]) -> str:
    if all(name.endswith("input_ids") for name in inputs):
        return "scientific" if walked.model_type.startswith(_SCIENTIFIC) else "nlp"
    for task, parts in _TASKS:
        if any(part in mapping for part in parts for mapping in walked.mappings):
            is_text_alone = inputs.keys() <= {*_TEXT, *CACHES}
            return "nlp" if task == "multimodal" and is_text_alone else task
    if walked.main == "past_values":
        return "other"
    if walked.model_type.startswith(_SCIENTIFIC):
        return "scientific"
    is_text = "input_ids" in inputs
    if any(name in inputs for name in _PICTURES):
        return "multimodal" if is_text else "cv"
    if any(name in inputs for name in _SOUNDS):
        return "multimodal" if is_text else "audio"
    is_heard = all("AUDIO" in m or "WAVEFORM" in m or "SPEC" in m for m in walked.mappings)
    return "audio" if is_heard else "nlp"


def _padding(walked: Walked) -> str:
    """Return an override that adds a padding token to a sequence classifier.

    The classifier uses the last token of each text that is not padding.
    """
    if not walked.name.endswith("ForSequenceClassification"):
        return ""
    text = walked.config.get_text_config()
    if getattr(text, "pad_token_id", 0) is not None:
        return ""
    return "pad_token_id=0" if text is walked.config else "text_config.pad_token_id=0"


def _line(
    walked: Walked, line_overrides: str, inputs: dict[str, str], workload: Workload, step: str = ""
) -> str:
    if workload.mode == "train" and hasattr(walked.config, "apply_spec_augment"):
        line_overrides = f"{line_overrides} apply_spec_augment=False"
    if workload.batch != 1 or workload.is_dynamic:
        line_overrides = f"{line_overrides} {_padding(walked)}"
    if _has_experts(walked.config) or _gives_experts(line_overrides):
        # Grouped matrix products support only bfloat16 on CPUs.
        workload = dataclasses.replace(workload, dtype="bfloat16")
    inputs = batched(inputs, workload.batch)
    # The values of grids determine sizes, and a step has as many texts as its cache.
    is_fixed = any(text.startswith(("grid(", "cache(")) for text in inputs.values())
    if is_fixed or walked.name.startswith(_CONSTANT_BATCH):
        workload = dataclasses.replace(workload, is_dynamic=False)
    dynamic = " ".join(_dynamic(walked.name, inputs)) if workload.is_dynamic else ""
    calls = " ".join(f"{name}={text}" for name, text in inputs.items())
    fields = (
        f"transformers/{walked.name}{step}{workload.suffix}", _task(walked, inputs), "transformers",
        walked.name, line_overrides.strip(), calls, workload.dtype, workload.mode, dynamic, "",
    )  # fmt: skip
    return " | ".join(fields)


def _dynamic(class_name: str, inputs: dict[str, str]) -> Iterator[str]:
    """Yield the symbols: the batch and the length of texts."""
    axis = 2 if "MultipleChoice" in class_name else 1
    for name in inputs:
        yield f"{name}.0"
        if name in ("input_ids", "attention_mask"):
            yield f"{name}.{axis}"
