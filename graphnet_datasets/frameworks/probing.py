"""One walk over the shapes of a graph at several sizes of its symbols at once.

Whoever looks for what the literals of an operator depend on calls it with one literal here and with
another there, and keeps what fits at all sizes.
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
    """What an operator gives at one point: its tensors, or a Python number.

    `unknown` is what only a run would tell; `failed` is a call that the framework refuses, for the
    reason `error`. `held` is the framework's own.
    """

    kind: Kind
    values: tuple[Value, ...] = ()
    number: bool | int | float | None = None
    error: str = ""
    held: Any = dataclasses.field(default=None, repr=False, compare=False)


class Prober(Protocol):
    """The walk; value `i` is input `i` of the sample, or what was kept as number `i`.

    Where `can_rewind` is false, operators have effects beyond their values, and `rewind` goes back
    to the first one whatever it is asked.
    """

    can_rewind: bool

    def call(self, ops: Sequence[Op]) -> tuple[Outcome, ...]:
        """Call one operator at all points, with the arguments of `ops[i]` at point `i`."""
        ...

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of a call for the values of the next operator."""

    def rewind(self, num_ops: int) -> int:
        """Forget all operators but the first `num_ops`, and return how many are left."""
        ...


def probe(
    sample: Sample,
    points: Sequence[Mapping[str, int]],
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> AbstractContextManager[Prober]:
    """Begin a walk at `points`, which map the sample's symbols to sizes.

    Raises:
        MissingExtraError: the sample's framework is not installed.
        MaterializeError, MemoryLimitError: the inputs cannot be made at one of the points.
        UnknownFrameworkError: the sample's framework offers no such walk.
    """
    return module(sample.framework, "probing").probe(
        sample,
        points,
        time_limit_s=time_limit_s,
        allow_unchecked_operators=allow_unchecked_operators,
    )
