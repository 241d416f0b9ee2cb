"""Roles of integer and mask inputs, inferred from the operators that use them.

A token is looked up in an embedding, an edge indexes nodes, and a mask is compared or multiplied
but is not an index. The operators also bound the elements; `redraws` draws elements within the
bounds.
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
"""The role of an integer or boolean input.

`tokens`: looked up in an embedding of many rows. `segments`: looked up in one of few rows (token
types). `positions`: consecutive integers. `mask`: zeros and ones that are not indices. `lengths`:
valid lengths of sequences. `indices`: of nodes, classes or positions. `edges`: both ends of each
edge of a graph whose self-loops or degrees matter. `number`: used in arithmetic (a time step).
`rows`: vectors with dependent elements (a box) that are independent of each other. `fixed`: a shape
or a count depends on the elements, so that other elements might not fit the graph.
"""

MAX_SEGMENTS = 4
"""Maximum number of rows of an embedding for token types and similar inputs."""

_SEGMENT_NAME = re.compile(r"token_type|segment", re.I)
_LENGTH_NAME = re.compile(r"len(gth)?s?_?\Z", re.I)


@dataclasses.dataclass(frozen=True, slots=True)
class InputRole:
    """The role of an integer or boolean input, and the range of its elements.

    Elements from `low` to `high`, inclusive, are valid for all uses; both are None if nothing is
    known from uses or recorded elements. `borders` are the integers c that the graph compares
    elements with: an element below c must stay below c, and any other element must stay at or above
    c. Padding thus remains padding.
    """

    kind: Kind
    low: int | None = None
    high: int | None = None
    borders: tuple[int, ...] = ()


@once_per_sample
def find_roles(sample: Sample) -> dict[int, InputRole]:
    """Return the role of each integer or boolean data input of a sample, by the input's index.

    Weights, buffers and constants have no role, since they do not change between calls.

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
        sample_input.role == "input" and is_whole(sample_input.value.dtype or "float")
        for sample_input in sample.inputs
    )
    return {
        index: _role(sample, index, findings)
        for index, findings in (trace(sample) if is_any else {}).items()
        if sample.inputs[index].role == "input"
    }


def _role(sample: Sample, index: int, findings: Findings) -> InputRole:
    sample_input = sample.inputs[index]
    stored = stored_elements(sample, sample_input)
    recorded = recorded_range(sample_input, stored)
    kind = _kind(sample, sample_input, findings, stored, recorded)
    low, high = _limits(findings, recorded, is_stored=stored is not None)
    borders = findings.thresholds | findings.equals | {number + 1 for number in findings.equals}
    return InputRole(kind, low, high, tuple(sorted(borders)) if kind != "mask" else ())


def _kind(
    sample: Sample,
    graph_input: Input,
    findings: Findings,
    stored: npt.NDArray | None,
    recorded: tuple[int, int] | None,
) -> Kind:
    rank = len(graph_input.value.shape or ())
    is_binary = graph_input.value.dtype == "bool"
    if recorded is not None:
        is_binary = recorded[0] >= 0 and recorded[1] <= 1
    if findings.is_shape:
        return "fixed"
    is_mixed = findings.is_mixed_into_shape or findings.is_mixed_into_index
    if (
        is_mixed
        and findings.bounds
        and rank == 2
        and (sample.shape_of(graph_input.value) or (0,))[0] == 2
    ):
        return "edges" if stored is not None and stored.size else "fixed"
    if findings.is_mixed_into_shape:
        return "fixed"
    if is_binary and rank and not findings.bounds:
        return "fixed" if findings.is_tested_into_shape else "mask"
    if findings.is_mixed_into_index:
        return "rows" if rank >= 3 else "fixed"
    if stored is not None and counts_up(stored):
        return "positions"
    if findings.embedding_rows:
        rows = min(findings.embedding_rows)
        is_segment = rows <= MAX_SEGMENTS and is_binary
        return (
            "segments" if is_segment or _SEGMENT_NAME.search(graph_input.source_name) else "tokens"
        )
    if findings.bounds:
        return "indices"
    is_compared = findings.is_compared_with_values and not findings.is_number
    if rank <= 1 and (is_compared or _LENGTH_NAME.search(graph_input.source_name)):
        return "lengths"
    return "number"


def _limits(
    findings: Findings, recorded: tuple[int, int] | None, *, is_stored: bool
) -> tuple[int | None, int | None]:
    """Return the range that is valid for all uses; the recorded range replaces unknown bounds."""
    if not findings.bounds:
        return recorded if recorded is not None else (None, None)
    low = max(bound for bound, _ in findings.bounds)
    bounds = [bound for _, bound in findings.bounds if bound is not None]
    high = min(bounds) if bounds else None
    if recorded is not None:
        # A recorded range must be respected, while stored elements are only examples.
        if high is None or len(bounds) < len(findings.bounds) or not is_stored:
            high = recorded[1] if high is None else min(high, recorded[1])
        if not is_stored:
            low = max(low, recorded[0])
    if high is not None and low > high:
        return recorded if recorded is not None else (None, None)
    return low, high


def stored_elements(sample: Sample, graph_input: Input) -> npt.NDArray | None:
    """Return the stored elements of an input in the shape of the capture, or None."""
    if graph_input.data is None or graph_input.value.dtype is None:
        return None
    little_endian = np.dtype(STORAGE[graph_input.value.dtype]).newbyteorder("<")
    data = np.frombuffer(graph_input.data, little_endian)
    return data.astype(STORAGE[graph_input.value.dtype]).reshape(
        sample.shape_of(graph_input.value) or ()
    )


def counts_up(elements: npt.NDArray) -> bool:
    """Return whether integers increase by one along the last axis.

    >>> counts_up(np.array([[2, 3, 4], [0, 1, 2]])), counts_up(np.array([0]))
    (True, False)
    """
    if elements.ndim == 0 or elements.shape[-1] < 2 or not elements.size:
        return False
    if elements.dtype.kind not in "iu":
        return False
    return bool((np.diff(elements.astype(np.int64), axis=-1) == 1).all())


def recorded_range(graph_input: Input, stored: npt.NDArray | None) -> tuple[int, int] | None:
    """Return the smallest and largest element, stored or measured, or None if unknown."""
    if stored is not None:
        return (int(stored.min()), int(stored.max())) if stored.size else None
    statistics = graph_input.statistics
    if (
        statistics is None
        or not statistics.is_measured
        or statistics.min is None
        or statistics.max is None
    ):
        return None
    if (
        not np.isfinite(statistics.min)
        or not np.isfinite(statistics.max)
        or statistics.min > statistics.max
    ):
        return None
    return int(statistics.min), int(statistics.max)
