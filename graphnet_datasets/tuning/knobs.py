"""The decisions of a schedule as named numbers, parsed from its trace, and as vectors.

A MetaSchedule trace is `[instructions, decisions]`. An instruction is `[name, inputs, attributes,
outputs]` and a decision `[index of the instruction, value]`. Other languages have an object of
options as trace. The trace is parsed as plain JSON, and no name in it is resolved, so that
untrusted traces are safe to read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..decoding import load_json
from ..errors import TuningError

_MAX_KNOBS = 4096


def trace_knobs(trace_json: str) -> dict[str, float]:
    """Return the decisions of a MetaSchedule trace, or the options of another language, by name.

    A tile has one number per factor, as log2: `tile.0.1` is the second factor of the first split.
    A sampled compute location is `location.0`, an index (-1 is the root, -2 means inlined). A
    sampled category is `category.0`, also an index. `length` is the number of instructions, which
    distinguishes sketches. Integers of an object of options are signed logs, `log2(1 + |value|)`;
    texts and null are 1 under the name `option=value`.

    Raises:
        TuningError: the string is not a trace, or has too many decisions.

    >>> text = '''[[["SamplePerfectTile", ["l"], [2, 16], ["a", "b"]],
    ...   ["SampleCategorical", [], [[0, 16], [0.5, 0.5]], ["c"]]], [[0, [32, 4]], [1, 1]]]'''
    >>> trace_knobs(text)
    {'length': 2.0, 'tile.0.0': 5.0, 'tile.0.1': 2.0, 'category.0': 1.0}
    >>> trace_knobs('{"tile": [31, 7], "pack": "auto", "unroll": 1}')
    {'tile.0': 5.0, 'tile.1': 3.0, 'pack=auto': 1.0, 'unroll': 1.0}
    """
    try:
        content = load_json(trace_json, "a trace")
        if isinstance(content, dict):
            return dict(_option_knobs(content))
        instructions, decisions = content
        by_index = {int(index): value for index, value in decisions}
        names = [str(instruction[0]) for instruction in instructions]
    except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
        raise TuningError(
            f"The trace is not of the form `[instructions, decisions]`: {type(error).__name__}: "
            f"{error}. Pass a trace written by MetaSchedule."
        ) from error
    knobs = {"length": float(len(names))}
    counts: dict[str, int] = {}
    for index, name in enumerate(names):
        if index not in by_index:
            continue
        kind = _KINDS.get(name, name)
        position = counts[kind] = counts.get(kind, -1) + 1
        knobs.update(_named(f"{kind}.{position}", by_index[index], is_tile=kind == "tile"))
        if len(knobs) > _MAX_KNOBS:
            raise TuningError(
                f"The trace has more than {_MAX_KNOBS} decisions. Leave out this candidate."
            )
    return knobs


_KINDS = {
    "SamplePerfectTile": "tile",
    "SamplePartitionedTile": "tile",
    "SampleCategorical": "category",
    "SampleComputeLocation": "location",
}


def _option_knobs(options: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in options.items():
        if isinstance(value, list) and all(isinstance(item, int) for item in value):
            yield from _option_knobs({f"{name}.{i}": item for i, item in enumerate(value)})
        elif isinstance(value, int | float):
            yield name, math.copysign(math.log2(1 + abs(value)), value)
        else:
            yield f"{name}={json.dumps(value) if isinstance(value, dict | list) else value}", 1.0


def _named(name: str, value: Any, *, is_tile: bool) -> dict[str, float]:
    try:
        if isinstance(value, list):
            factors = [float(factor) for factor in value]
            if is_tile:
                return {f"{name}.{i}": math.log2(factor) for i, factor in enumerate(factors)}
            return {f"{name}.{i}": factor for i, factor in enumerate(factors)}
        return {name: float(value)}
    except (TypeError, ValueError, OverflowError) as error:
        raise TuningError(
            f"The decision `{name}` of the trace is not a number: {error}. Pass a trace written "
            "by MetaSchedule."
        ) from error


def knob_matrix(knobs: Sequence[Mapping[str, float]]) -> tuple[np.ndarray, list[str]]:
    """Return float64 [n, k], columns scaled to [0, 1] by minimum and maximum, and their names.

    Missing decisions are 0, and constant columns are dropped. Scaling uses decisions only, not
    measured times, so that it requires no measurements.

    >>> matrix, names = knob_matrix([{"a": 0, "b": 3}, {"a": 4, "b": 3}, {"a": 1, "b": 3, "c": 1}])
    >>> names, matrix.tolist()
    (['a', 'c'], [[0.0, 0.0], [1.0, 0.0], [0.25, 1.0]])
    """
    names = sorted({name for mapping in knobs for name in mapping})
    if not names:
        return np.zeros((len(knobs), 0)), []
    matrix = np.array([[float(mapping.get(name, 0.0)) for name in names] for mapping in knobs])
    matrix = matrix.reshape(len(knobs), len(names))
    if not np.isfinite(matrix).all():
        raise TuningError("Knobs must be finite. Remove candidates with infinite or NaN knobs.")
    least, spread = matrix.min(axis=0), np.ptp(matrix, axis=0)
    varies = spread > 0
    scaled = (matrix[:, varies] - least[varies]) / spread[varies]
    return scaled, [name for name, is_used in zip(names, varies, strict=True) if is_used]
