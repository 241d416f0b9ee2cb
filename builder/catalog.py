"""Catalogs of models: text files with one entry per line.

    name | task | library | builder | overrides | inputs | dtype | mode | dynamic | tags

`name` becomes the sample's id. `library` is `transformers` (the builder is a model class, the
overrides are its config's), `torch` (the builder is a function of `builder.architectures`, the
overrides are its arguments), `paddle` (the same with `builder.architectures_paddle`), or another
module of `builder.libraries` (the builder is the library's name of the model). Overrides are
`key=literal` with literals of Python; a dotted key goes into a nested config. Inputs are
`name=kind(shape; argument, …)`, see `builder.examples`.
Inputs `_0`, `_1`, … are passed by position. `dynamic` names dimensions that become symbols (`x.0`),
`all` for every one, or is empty. Empty lines and lines that start with `#` are skipped.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample.vocabulary import Task

from .paddle_packages import PACKAGES

FIELDS = (
    "name", "task", "library", "builder", "overrides", "inputs", "dtype", "mode", "dynamic", "tags",
)  # fmt: skip
LIBRARIES = (
    "torch", "transformers", "timm", "torchvision", "diffusers", "torchaudio", "torch_geometric",
    "ultralytics", "segmentation_models_pytorch", "pytorchcv", "vit_pytorch", "monai", "spandrel",
    "kornia", "neuralop", "asteroid", "speechbrain", "torch_rechub", "torchao", "paddle",
    "paddleclas", *PACKAGES,
)  # fmt: skip
DTYPES = ("float32", "bfloat16", "float16")
MODES = ("eval", "train")

LIBRARY_VARIABLE = "GRAPHNET_BUILDER_LIBRARY"
"""The environment variable that names the library that a worker imports before it forks."""

_INPUT = re.compile(
    r"(?P<name>[A-Za-z_]\w*)=(?P<kind>[a-z]+)\((?P<shape>[\d, ]*)(?:;(?P<args>[^()]*))?\)\Z"
)


class CatalogError(GraphNetError, ValueError):
    """A line of a catalog does not follow the format."""


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """One argument of the model's call."""

    name: str
    kind: str
    shape: tuple[int, ...]
    arguments: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model with its sizes, its example inputs and its capture options."""

    name: str
    task: Task
    library: str
    builder: str
    overrides: dict[str, Any]
    inputs: tuple[InputSpec, ...]
    dtype: str
    mode: str
    dynamic: tuple[str, ...]
    tags: tuple[str, ...]
    line: str


def read_catalog(path: Path) -> list[Entry]:
    """Return the entries of a catalog, in its order.

    Raises:
        CatalogError: a line does not follow the format, or a name occurs twice.
    """
    entries = [
        _parse(line, f"{path}:{number}")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    names: set[str] = set()
    for entry in entries:
        if entry.name in names:
            raise CatalogError(f"`{path}` has two entries `{entry.name}`. Rename one of them.")
        names.add(entry.name)
    return entries


def parse_line(line: str) -> Entry:
    """Return the entry that one line of a catalog describes.

    >>> entry = parse_line("torch/mlp | other | torch | mlp | sizes=[4, 2] | x=normal(8, 4) "
    ...                    "| float32 | eval | x.0 | small")
    >>> entry.inputs, entry.overrides, entry.dynamic
    ((InputSpec(name='x', kind='normal', shape=(8, 4), arguments=()),), {'sizes': [4, 2]}, ('x.0',))
    """
    return _parse(line, "the catalog")


def _parse(line: str, where: str) -> Entry:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != len(FIELDS):
        raise CatalogError(
            f"{where} has {len(fields)} fields; a catalog line has {len(FIELDS)}: "
            f"{' | '.join(FIELDS)}."
        )
    by_field: dict[str, str] = dict(zip(FIELDS, fields, strict=True))
    for field, accepted in (
        ("task", get_args(Task)), ("library", LIBRARIES), ("dtype", DTYPES), ("mode", MODES),
    ):  # fmt: skip
        if by_field[field] not in accepted:
            raise CatalogError(
                f"{where} has the {field} `{by_field[field]}` (accepted: {', '.join(accepted)})."
            )
    return Entry(
        name=by_field["name"],
        task=cast(Task, by_field["task"]),
        library=by_field["library"],
        builder=by_field["builder"],
        overrides=dict(_overrides(by_field["overrides"], where)),
        inputs=tuple(_input_spec(text, where) for text in _split(by_field["inputs"])),
        dtype=by_field["dtype"],
        mode=by_field["mode"],
        dynamic=tuple(by_field["dynamic"].split()),
        tags=tuple(by_field["tags"].split()),
        line=" | ".join(fields),
    )


def parse_overrides(text: str) -> dict[str, Any]:
    """Return the overrides of a catalog line by key.

    >>> parse_overrides('sizes=[4, 2] act="relu"')
    {'sizes': [4, 2], 'act': 'relu'}
    """
    return dict(_overrides(text, "the catalog"))


def _split(text: str) -> Iterator[str]:
    """Split at the spaces outside of brackets."""
    depth, start = 0, 0
    for position, character in enumerate(f"{text} "):
        depth += (character in "([{") - (character in ")]}")
        if character == " " and depth == 0:
            if part := text[start:position].strip():
                yield part
            start = position


def _overrides(text: str, where: str) -> Iterator[tuple[str, Any]]:
    for part in _split(text):
        key, separator, value = part.partition("=")
        try:
            yield key, ast.literal_eval(value)
        except (ValueError, SyntaxError) as error:
            raise CatalogError(
                f"{where} has the override `{part}`; write `key=literal` with a Python literal."
            ) from (error if separator else None)


def _input_spec(text: str, where: str) -> InputSpec:
    match = _INPUT.match(text)
    if match is None:
        raise CatalogError(
            f"{where} has the input `{text}`; write `name=kind(shape; argument, …)`, as in "
            "`input_ids=ids(1, 128; 30522)`."
        )
    shape = tuple(int(size) for size in match["shape"].split(",") if size.strip())
    arguments = tuple(
        float(number) for number in (match["args"] or "").split(",") if number.strip()
    )
    return InputSpec(match["name"], match["kind"], shape, arguments)
