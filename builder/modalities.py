"""Kinds of data that a graph reads, and labels that do not match them.

A vision-language model that is called with tokens alone leaves a graph of its text decoder. Its
class still names both kinds of data, so labels are compared with the inputs of the graph:

- *text*: integers of at least two dimensions that reach an embedding or are named after tokens;
- *layout*: an input named after boxes, the places of words on a page;
- *image*: an input named after images or videos, or floats of at least four dimensions;
- *audio*: an input named after sounds, or floats of few dimensions.

Floats without a telling name may be any of several kinds. A label is reported only if no assignment
of kinds to inputs supports it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_NAMES = (
    (re.compile(r"bbox|boxes"), "layout"),
    (re.compile(r"pixel|image|video|picture|frame|patches|visual|regions"), "image"),
    (re.compile(r"input_features|input_values|audio|wave?|speech|spec|mel"), "audio"),
    (re.compile(r"encoder_hidden_states|text_embeds|proj_embedding|caption"), "text"),
)
"""Words in names of inputs, and what these inputs contain."""

_TOKENS = re.compile(r"input_ids|tokens")
_NO_TEXT = re.compile(r"mask|position|timestep|token_type|_type_ids|bbox|grid|size|label|aspect")
"""Words in names of integer inputs without tokens."""

_PICTURE_AND_TEXT = ("image", "text")

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "cv": ("image",),
    "nlp": ("text",),
    "image-text-to-text": _PICTURE_AND_TEXT,
    "image-text-matching": _PICTURE_AND_TEXT,
    "captioning": _PICTURE_AND_TEXT,
    "zero-shot-detection": _PICTURE_AND_TEXT,
    "text-to-image": _PICTURE_AND_TEXT,
    "audio-text-to-text": ("audio", "text"),
    "seq2seq-lm": ("text", "text"),
    "translation": ("text", "text"),
    "causal-lm": ("text",),
    "masked-lm": ("text",),
    "speech-recognition": ("audio",),
    "audio-classification": ("audio",),
    "speaker-verification": ("audio",),
    "text-recognition": ("image",),
}
"""Inputs that a task or subtask needs. Encoder-decoders read two texts."""


class Mislabelled(NamedTuple):
    """A row with a label that needs inputs which its graph does not read."""

    id: str
    label: str
    needed: tuple[str, ...]
    modalities: tuple[frozenset[str], ...]


def modalities(row: Mapping[str, Any]) -> list[frozenset[str]]:
    """Return the possible kinds of data of each input of a graph that contains data.

    >>> ids = {"role": "input", "source_name": "L_ids_", "dtype": "int64", "shape": [1, 8]}
    >>> pixels = {"role": "input", "source_name": "L_x_", "dtype": "float32", "shape": [1, 3, 8, 8]}
    >>> op = {"target": "torch.nn.functional.embedding", "operands": [0], "results": [{}]}
    >>> [sorted(kinds) for kinds in modalities({"inputs": [ids, pixels], "ops": [op]})]
    [['text'], ['image']]
    """
    tokens = _token_inputs(row)
    kinds = (
        _TEXT if position in tokens else _of_name_and_shape(value)
        for position, value in enumerate(row["inputs"])
        if value["role"] == "input"
    )
    return [kind for kind in kinds if kind]


_TEXT = frozenset({"text"})


def _token_inputs(row: Mapping[str, Any]) -> set[int]:
    """Return the positions of integer inputs that reach an embedding, also after integer ops."""
    origins: dict[int, set[int]] = {
        position: {position}
        for position, value in enumerate(row["inputs"])
        if value["role"] == "input"
        and value["dtype"] in ("int32", "int64")
        and len(value["shape"]) >= 2
        and not _NO_TEXT.search(value["source_name"].lower())
    }
    tokens = {
        position
        for position in origins
        if _TOKENS.search(row["inputs"][position]["source_name"].lower())
    }
    if tokens == origins.keys():
        return tokens
    number = len(row["inputs"])
    for op in row["ops"]:
        reached = set().union(*(origins.get(operand, ()) for operand in op["operands"]))
        if op["target"].endswith("embedding"):
            tokens |= reached
        for result in op["results"] or ():
            if reached and result.get("dtype") in ("int32", "int64"):
                origins[number] = reached
            number += 1
    return tokens


def _of_name_and_shape(value: Mapping[str, Any]) -> frozenset[str]:
    shape, name = value["shape"], value["source_name"].lower()
    is_float = value["dtype"] in ("float32", "bfloat16", "float16", "float64")
    for words, kind in _NAMES:
        if words.search(name) and (is_float or kind == "layout"):
            return frozenset({kind})
    if not is_float:
        return frozenset()
    if len(shape) >= 4:
        return frozenset({"image", "audio"} if shape[1] <= 2 else {"image"})
    return frozenset({"audio", "image", "text"} if len(shape) in (2, 3) else {"audio"})


def is_supported(needed: Sequence[str], read: Sequence[frozenset[str]]) -> bool:
    """Return whether different inputs of a graph can contain all needed kinds of data.

    >>> is_supported(("image", "text"), [frozenset({"text"}), frozenset({"image", "audio"})])
    True
    >>> is_supported(("text", "text"), [frozenset({"text"})])
    False
    """
    return any(
        all(kind in kinds for kind, kinds in zip(needed, chosen, strict=True))
        for chosen in itertools.permutations(read, len(needed))
    )


def mislabelled(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mislabelled]:
    """Yield the rows of whole graphs whose task or subtask needs data that they do not read.

    The columns `id`, `task`, `subtask`, `parent_id`, `inputs` and `ops` are needed.
    """
    for row in rows:
        if row["parent_id"]:
            continue  # the inputs of a piece are values of its model
        read = modalities(row)
        if row["task"] == "multimodal" and len(set().union(*read)) < 2:
            yield Mislabelled(row["id"], "multimodal", ("two modalities",), tuple(read))
        for label in (row["task"], row["subtask"]):
            needed = _NEEDED.get(label or "", ())
            if not is_supported(needed, read):
                yield Mislabelled(row["id"], str(label), needed, tuple(read))
