"""Candidates: schedules of a task, before they are measured."""

from __future__ import annotations

import dataclasses
import enum
import hashlib

import numpy as np


class Origin(enum.StrEnum):
    """The source of a candidate."""

    RANDOM = "random"
    """Drawn from the space."""
    MUTATE = "mutate"
    """Mutated or crossed over from other candidates."""
    TEMPLATE = "template"
    """Enumerated from the parameters of a template."""
    PREDICT = "predict"
    """Selected by a model from random draws."""


def trace_hash(trace_json: str) -> str:
    """Return the blake2b hash of a trace's JSON string, 32 hexadecimal digits.

    >>> trace_hash("[[], []]") == trace_hash("[[],[]]")
    False
    """
    return hashlib.blake2b(trace_json.encode(), digest_size=16).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule: `trace_json` replays on the workload of the task `task_id`.

    `predicted` and `predicted_std` are the tuner's prediction in its own unit, or None.

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
        """The hash that identifies the candidate within its task in proposals and records."""
        return trace_hash(self.trace_json)

    @property
    def key(self) -> str:
        """`task_id/trace_hash`, unique across tasks that share a trace."""
        return f"{self.task_id}/{self.trace_hash}"


class EdgeKind(enum.IntEnum):
    """The relation that an edge of a program graph expresses."""

    DOWN = 0
    """From a node of the syntax tree to its children."""
    UP = 1
    """From a child to its parent."""
    NEXT = 2
    """To the next sibling."""
    DATA = 3
    """From the store that writes a buffer to the loads that read it."""
    PART = 4
    """From an operation or a load to the store of its statement."""
    AROUND = 5
    """From a loop to each load, store or branch nested in it, at any depth."""
    INSIDE = 6
    """The reverse of `AROUND`."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ProgramGraph:
    """A scheduled program as a graph, for models that learn from its syntax tree.

    `nodes` is float32 [n, f], a row per loop, load, store or operation. `edges` is int64 [2, e]:
    sources and targets. `edge_kinds` is int64 [e] of `EdgeKind`. `edge_features` is float32 [e, g],
    zero except for the kinds `AROUND` and `INSIDE`. `log_runs` is float32 [n], the natural
    logarithm of a statement's execution count, minus infinity for nodes that are not statements.
    """

    nodes: np.ndarray
    edges: np.ndarray
    edge_kinds: np.ndarray
    edge_features: np.ndarray
    log_runs: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All arrays, in the order of the constructor."""
        return self.nodes, self.edges, self.edge_kinds, self.edge_features, self.log_runs
