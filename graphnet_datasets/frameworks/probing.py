"""Shape inference for a graph at several sizes of its symbols in a single pass.

To find the dependencies of an operator's literals, a caller tries a different literal at each point
and keeps the literals that work at all sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from ..sample import Op, Sample, Value
from .contract import module

Kind: TypeAlias = Literal["known", "unknown", "failed"]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an operator at one point: tensors or a Python number.

    `unknown` results would require a run. `failed` is a call that the framework rejects, with the
    reason in `error`. `result` is the framework's own object.
    """

    kind: Kind
    values: tuple[Value, ...] = ()
    number: bool | int | float | None = None
    error: str = ""
    result: Any = dataclasses.field(default=None, repr=False, compare=False)


class Prober(Protocol):
    """Shape inference in progress. Value `i` is input `i` of the sample or the i-th value kept.

    If `can_rewind` is false, operators have side effects, and `rewind` always returns to the first
    operator.
    """

    can_rewind: bool

    def call(self, ops: Sequence[Op]) -> tuple[Outcome, ...]:
        """Call one operator at all points, with the arguments of `ops[i]` at point `i`."""
        ...

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Store the outcomes of a call as the values of the next operator."""

    def rewind(self, num_ops: int) -> int:
        """Forget all operators after the first `num_ops`, and return how many remain."""
        ...


def probe(
    sample: Sample,
    points: Sequence[Mapping[str, int]],
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> AbstractContextManager[Prober]:
    """Start shape inference at `points`, which map the sample's symbols to sizes.

    Raises:
        MissingExtraError: the sample's framework is not installed.
        MaterializeError, MemoryLimitError: the inputs cannot be created at one of the points.
        UnknownFrameworkError: the sample's framework does not support probing.
    """
    return module(sample.framework, "probing").probe(
        sample,
        points,
        time_limit_s=time_limit_s,
        allow_unchecked_operators=allow_unchecked_operators,
    )
