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


class EdgeKind(enum.IntEnum):
    """What an edge of a program graph leads from and to."""

    DOWN = 0
    """From a node of the syntax tree to what is in it."""
    UP = 1
    """The other way."""
    NEXT = 2
    """To the next node in the same one."""
    DATA = 3
    """From who writes a buffer to who reads it."""
    PART = 4
    """From an operation or a load to the store of the statement that it is part of."""
    AROUND = 5
    """From a loop to a load, a store or a choice in it, however deep."""
    INSIDE = 6
    """The other way."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ProgramGraph:
    """A scheduled program as a graph, for models that learn from its syntax tree.

    `nodes` is float32 [n, f], one row a loop, load, store or operation; `edges` int64 [2, e] from
    and to; `edge_kinds` int64 [e], of `EdgeKind`; `edge_features` float32 [e, g], zeros but for the
    kinds `AROUND` and `INSIDE`; `log_runs` float32 [n] the natural logarithm of how often a
    statement is run, minus infinity of nodes that are none.
    """

    nodes: np.ndarray
    edges: np.ndarray
    edge_kinds: np.ndarray
    edge_features: np.ndarray
    log_runs: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All of them, in the order of the constructor."""
        return self.nodes, self.edges, self.edge_kinds, self.edge_features, self.log_runs
