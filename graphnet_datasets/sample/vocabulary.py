"""The closed vocabularies of a sample: frameworks, tasks, roles, relations and dtypes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from ..plugins import entry_points

Framework: TypeAlias = Literal["torch", "paddle"]
Task: TypeAlias = Literal["cv", "nlp", "audio", "multimodal", "scientific", "other"]
Role: TypeAlias = Literal["input", "parameter", "buffer", "constant", "symbol", "scalar"]
"""The role of an input. `input`: data that change with each call. `parameter`, `buffer`: weights.
`constant`: a tensor literal of the traced program. `symbol`: the integer value of a symbolic
dimension. `scalar`: a Python number passed at run time."""
Relation: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]

Origin: TypeAlias = Literal["recorded", "initialised", "calibrated"]
"""The origin of statistics. `recorded`: measured on the model's own tensors. `initialised`: the
defaults of a role, without a real tensor. `calibrated`: adjusted to the values that arrive at the
tensor's operators (see `calibrate`)."""
Calibration: TypeAlias = Literal["", "unneeded", "calibrated", "shared"]
Signal: TypeAlias = Literal[
    "", "image", "sound", "spectrogram", "features", "text", "padding"
]  # fmt: skip
"""The structure that a data input is drawn with: that of natural data of this kind, or none."""
Kind: TypeAlias = Literal["graph", "subgraph", "joint", "forward", "backward"]
"""The kind of a sample. `graph`: as captured. `subgraph`: operators cut out of a graph. `joint`: a
graph with its gradients. `forward`, `backward`: the two halves of a joint graph."""
PartMethod: TypeAlias = Literal["sole_op", "rules", "inductor", "inductor_cuda", "repeats"]
"""The method by which a part of a graph was found (`transforms.subgraphs`)."""

FRAMEWORKS: tuple[str, ...] = get_args(Framework)
"""The built-in frameworks; packages add others by entry points."""
TASKS: tuple[str, ...] = get_args(Task)
ROLES: tuple[str, ...] = get_args(Role)
RELATIONS: tuple[str, ...] = get_args(Relation)
CALIBRATIONS: tuple[str, ...] = get_args(Calibration)
SIGNALS: tuple[str, ...] = get_args(Signal)
KINDS: tuple[str, ...] = get_args(Kind)
PART_METHODS: tuple[str, ...] = get_args(PartMethod)
WEIGHT_ROLES = frozenset({"parameter", "buffer", "constant"})

ITEM_SIZE_BYTES: Mapping[str, int] = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint16": 2, "uint32": 4, "uint64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "complex32": 4, "complex64": 8, "complex128": 16,
    "quint8": 1, "qint8": 1, "qint32": 4,
}  # fmt: skip
"""Bytes per element of each possible dtype, by the dtype's canonical name."""

FRAMEWORK_GROUP = "graphnet_datasets.frameworks"
"""The entry point group for frameworks of other packages; a value is a package name."""


@functools.cache
def framework_entry_points() -> Mapping[str, str]:
    """Return the frameworks of installed packages, name to package, without importing them."""
    return {
        point.name: point.value
        for point in entry_points(FRAMEWORK_GROUP)
        if point.name not in FRAMEWORKS
    }


def framework_package(name: str) -> str | None:
    """Return the package of a framework, or None for an unknown name.

    >>> framework_package("paddle")
    'graphnet_datasets.frameworks.paddle'
    """
    if name in FRAMEWORKS:
        return f"{__name__.partition('.')[0]}.frameworks.{name}"
    value = framework_entry_points().get(name)
    return None if value is None else value.partition(":")[0]


def framework_names() -> tuple[str, ...]:
    """Return the names of all frameworks, built-in frameworks first.

    >>> framework_names()[:2]
    ('torch', 'paddle')
    """
    return (*FRAMEWORKS, *sorted(framework_entry_points()))


def is_framework(name: str) -> bool:
    """Return whether a name is a supported framework.

    >>> is_framework("torch"), is_framework("tensorflow")
    (True, False)
    """
    return name in FRAMEWORKS or name in framework_entry_points()
