"""A candidate: one schedule of one task, before it is measured."""

from __future__ import annotations

import dataclasses
import enum
import hashlib

import numpy as np


class Origin(enum.StrEnum):
    """Where a candidate comes from."""

    RANDOM = "random"
    """Drawn from the space."""
    MUTATE = "mutate"
    """Changed or crossed from others."""
    TEMPLATE = "template"
    """Enumerated from a template's parameters."""
    PREDICT = "predict"
    """Chosen among drawn ones by a model."""


def trace_hash(trace_json: str) -> str:
    """Return 32 hexadecimal digits, blake2b, that stand for a trace's text.

    >>> trace_hash("[[], []]") == trace_hash("[[],[]]")
    False
    """
    return hashlib.blake2b(trace_json.encode(), digest_size=16).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule: `trace_json` replays alone on the workload of the task `task_id`.

    `predicted` and `predicted_std` are what the tuner expects of it, in the tuner's own unit; None
    where it expects nothing.

    >>> candidate = Candidate("a1", "[[], []]", Origin.RANDOM)
    >>> candidate.trace_hash == trace_hash("[[], []]")
    True
    """

    task_id: str
    trace_json: str = dataclasses.field(repr=False)
    origin: Origin
    predicted: float | None = None
    predicted_std: float | None = None

    @property
    def trace_hash(self) -> str:
        """`trace_hash(trace_json)`: what proposals, records and replays know a candidate by."""
        return trace_hash(self.trace_json)

    @property
    def key(self) -> str:
        """`task_id/trace_hash`: two tasks may have candidates of one text."""
        return f"{self.task_id}/{self.trace_hash}"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ProgramGraph:
    """A scheduled program as a graph, for models that learn from its syntax tree.

    `nodes` is float32 [n, f], one row a loop, block, load, store or operation; `edges` int64 [2, e]
    from and to; `edge_kinds` int64 [e]: 0 parent to child, 1 child to parent, 2 to the next
    sibling, 3 from who writes a buffer to who reads it.
    """

    nodes: np.ndarray
    edges: np.ndarray
    edge_kinds: np.ndarray
