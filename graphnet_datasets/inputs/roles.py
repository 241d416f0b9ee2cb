"""What the integers and masks among a sample's inputs are for, told by what consumes them.

A token is looked up in an embedding, an edge indexes nodes, a mask is compared or multiplied and
indexes nothing. What the consumers ask for bounds what may be drawn; `redraws` draws it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..sample import Input, Sample
from .flows import Findings, trace
from .keeping import once_per_sample
from .storage import STORAGE
from .terms import is_whole

Kind: TypeAlias = Literal[
    "tokens",
    "segments",
    "positions",
    "mask",
    "lengths",
    "indices",
    "edges",
    "number",
    "rows",
    "fixed",
]
"""What an integer or boolean input is.

`tokens`: looked up in an embedding of many rows. `segments`: in one of few rows (token types).
`positions`: count up. `mask`: zeros and ones that index nothing. `lengths`: how much of each
sequence counts. `indices`: of nodes, classes, places. `edges`: the two ends of each edge of a graph
whose loops or degrees matter. `number`: is calculated with (a time step).
`rows`: elements that depend on each other within a vector (a box), vectors that do not.
`fixed`: a shape or a count follows from the elements, so that others might not fit the graph.
"""

MAX_SEGMENTS = 4
"""Embeddings of at most so many rows are looked up by token types and the like."""

_SEGMENT_NAME = re.compile(r"token_type|segment", re.I)
_LENGTH_NAME = re.compile(r"len(gth)?s?_?\Z", re.I)


@dataclasses.dataclass(frozen=True, slots=True)
class InputRole:
    """What an integer or boolean input is for, and what its elements may be.

    Elements from `low` to `high`, inclusive, fit everything that consumes them; both are None
    where nothing is known, neither from consumers nor from the record. `borders` are the whole
    numbers c such that an element x with `x < c` must stay below c and any other must not fall
    below it, since the graph compares it with a number: padding stays padding.
    """

    kind: Kind
    low: int | None = None
    high: int | None = None
    borders: tuple[int, ...] = ()


@once_per_sample
def find_roles(sample: Sample) -> dict[int, InputRole]:
    """Return the role of each integer or boolean data input of a sample, by the input's index.

    Weights, buffers and constants of the graph have none: they do not change from call to call.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> look_up = Op("torch.nn.functional.embedding", (Ref(0), Ref(1)))
    >>> ids, table = Value("int64", (2, 8)), Value("float32", (1000, 16))
    >>> sample = Sample("example/embedding", "torch", "nlp",
    ...     (Input("input", ids), Input("parameter", table)), (look_up,), Ref(2))
    >>> find_roles(sample)[0]
    InputRole(kind='tokens', low=0, high=999, borders=())
    """
    is_any = any(
        each.role == "input" and is_whole(each.value.dtype or "float") for each in sample.inputs
    )
    return {
        index: _role(sample, index, found)
        for index, found in (trace(sample) if is_any else {}).items()
        if sample.inputs[index].role == "input"
    }


def _role(sample: Sample, index: int, found: Findings) -> InputRole:
    each = sample.inputs[index]
    stored = stored_elements(sample, each)
    recorded = recorded_range(each, stored)
    kind = _kind(sample, each, found, stored, recorded)
    low, high = _limits(found, recorded, is_stored=stored is not None)
    borders = found.thresholds | found.equals | {number + 1 for number in found.equals}
    return InputRole(kind, low, high, tuple(sorted(borders)) if kind != "mask" else ())


def _kind(
    sample: Sample,
    each: Input,
    found: Findings,
    stored: npt.NDArray | None,
    recorded: tuple[int, int] | None,
) -> Kind:
    rank = len(each.value.shape or ())
    is_binary = each.value.dtype == "bool"
    if recorded is not None:
        is_binary = recorded[0] >= 0 and recorded[1] <= 1
    if found.is_shape:
        return "fixed"
    is_mixed = found.is_mixed_into_shape or found.is_mixed_into_index
    if is_mixed and found.bounds and rank == 2 and (sample.shape_of(each.value) or (0,))[0] == 2:
        return "edges" if stored is not None and stored.size else "fixed"
    if found.is_mixed_into_shape:
        return "fixed"
    if is_binary and rank and not found.bounds:
        return "fixed" if found.is_tested_into_shape else "mask"
    if found.is_mixed_into_index:
        return "rows" if rank >= 3 else "fixed"
    if stored is not None and counts_up(stored):
        return "positions"
    if found.embedding_rows:
        rows = min(found.embedding_rows)
        is_segment = rows <= MAX_SEGMENTS and is_binary
        return "segments" if is_segment or _SEGMENT_NAME.search(each.source_name) else "tokens"
    if found.bounds:
        return "indices"
    is_compared = found.is_compared_with_values and not found.is_number
    if rank <= 1 and (is_compared or _LENGTH_NAME.search(each.source_name)):
        return "lengths"
    return "number"


def _limits(
    found: Findings, recorded: tuple[int, int] | None, *, is_stored: bool
) -> tuple[int | None, int | None]:
    """Return the range that suits every consumer; what they leave open is as it was recorded."""
    if not found.bounds:
        return recorded if recorded is not None else (None, None)
    low = max(bound for bound, _ in found.bounds)
    known = [bound for _, bound in found.bounds if bound is not None]
    high = min(known) if known else None
    if recorded is not None:
        # A range that was recorded is to be met; single elements that were stored are examples.
        if high is None or len(known) < len(found.bounds) or not is_stored:
            high = recorded[1] if high is None else min(high, recorded[1])
        if not is_stored:
            low = max(low, recorded[0])
    if high is not None and low > high:
        return recorded if recorded is not None else (None, None)
    return low, high


def stored_elements(sample: Sample, each: Input) -> npt.NDArray | None:
    """Return the stored elements of an input in the shape of the capture, or None."""
    if each.data is None or each.value.dtype is None:
        return None
    little_endian = np.dtype(STORAGE[each.value.dtype]).newbyteorder("<")
    data = np.frombuffer(each.data, little_endian)
    return data.astype(STORAGE[each.value.dtype]).reshape(sample.shape_of(each.value) or ())


def counts_up(elements: npt.NDArray) -> bool:
    """Tell whether integers go up by one along the last axis.

    >>> counts_up(np.array([[2, 3, 4], [0, 1, 2]])), counts_up(np.array([0]))
    (True, False)
    """
    if elements.ndim == 0 or elements.shape[-1] < 2 or not elements.size:
        return False
    if elements.dtype.kind not in "iu":
        return False
    return bool((np.diff(elements.astype(np.int64), axis=-1) == 1).all())


def recorded_range(each: Input, stored: npt.NDArray | None) -> tuple[int, int] | None:
    """Return the smallest and the largest element on record, stored or measured; None if none."""
    if stored is not None:
        return (int(stored.min()), int(stored.max())) if stored.size else None
    held = each.statistics
    if held is None or not held.is_measured or held.min is None or held.max is None:
        return None
    if not np.isfinite(held.min) or not np.isfinite(held.max) or held.min > held.max:
        return None
    return int(held.min), int(held.max)
