"""The decisions of a schedule as named numbers, read from its trace's text, and as vectors.

A MetaSchedule trace is `[instructions, decisions]`; an instruction is `[name, inputs, attributes,
outputs]` and a decision `[index of the instruction, value]`. The text is read as JSON and nothing
of it is looked up, so that it may come from a stranger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..decoding import load_json
from ..errors import TuningError

_MAX_KNOBS = 4096


def trace_knobs(trace_json: str) -> dict[str, float]:
    """Return the decisions of a MetaSchedule trace by name.

    A tile is one number per factor, as log2: `tile.0.1` is the second factor of the first split.
    A drawn place is `location.0`, an index (-1 the root, -2 inlined); a drawn category
    `category.0`, an index too. `length` is the number of instructions, which tells sketches apart.

    Raises:
        TuningError: the text is no such trace.

    >>> text = '''[[["SamplePerfectTile", ["l"], [2, 16], ["a", "b"]],
    ...   ["SampleCategorical", [], [[0, 16], [0.5, 0.5]], ["c"]]], [[0, [32, 4]], [1, 1]]]'''
    >>> trace_knobs(text)
    {'length': 2.0, 'tile.0.0': 5.0, 'tile.0.1': 2.0, 'category.0': 1.0}
    """
    try:
        instructions, decisions = load_json(trace_json, "a trace")
        by_index = {int(index): value for index, value in decisions}
        names = [str(instruction[0]) for instruction in instructions]
    except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
        raise TuningError(
            f"The trace is not `[instructions, decisions]`: {type(error).__name__}: {error}."
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
            raise TuningError(f"The trace has more than {_MAX_KNOBS} decisions.")
    return knobs


_KINDS = {
    "SamplePerfectTile": "tile",
    "SamplePartitionedTile": "tile",
    "SampleCategorical": "category",
    "SampleComputeLocation": "location",
}


def _named(name: str, value: Any, *, is_tile: bool) -> dict[str, float]:
    try:
        if isinstance(value, list):
            factors = [float(each) for each in value]
            if is_tile:
                return {f"{name}.{i}": math.log2(each) for i, each in enumerate(factors)}
            return {f"{name}.{i}": each for i, each in enumerate(factors)}
        return {name: float(value)}
    except (TypeError, ValueError, OverflowError) as error:
        raise TuningError(f"The decision `{name}` of the trace is no number: {error}.") from error


def knob_matrix(knobs: Sequence[Mapping[str, float]]) -> tuple[np.ndarray, list[str]]:
    """Return float64 [n, k] in [0, 1] and the names: each column by its least and largest value.

    Decisions that a candidate does not have are 0, and a column that never varies is left out.
    Only decisions are looked at, no measured time: what the scale is known from costs nothing.

    >>> matrix, names = knob_matrix([{"a": 0, "b": 3}, {"a": 4, "b": 3}, {"a": 1, "b": 3, "c": 1}])
    >>> names, matrix.tolist()
    (['a', 'c'], [[0.0, 0.0], [1.0, 0.0], [0.25, 1.0]])
    """
    names = sorted({name for each in knobs for name in each})
    if not names:
        return np.zeros((len(knobs), 0)), []
    matrix = np.array([[float(each.get(name, 0.0)) for name in names] for each in knobs])
    matrix = matrix.reshape(len(knobs), len(names))
    if not np.isfinite(matrix).all():
        raise TuningError("A knob is infinite or not a number; give finite ones.")
    least, spread = matrix.min(axis=0), np.ptp(matrix, axis=0)
    varies = spread > 0
    scaled = (matrix[:, varies] - least[varies]) / spread[varies]
    return scaled, [name for name, does in zip(names, varies, strict=True) if does]
