"""What a framework tells of operators: what they give, in which mode, and what a run showed."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

from ..sample import Statistics, Value

Kind: TypeAlias = Literal["tensor", "number", "other"]

NOTHING = Value()


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One value: a tensor with its `Value`, a Python number, or neither (a tuple, nothing).

    A tensor or number that only a run would tell is `other`.
    """

    kind: Kind
    value: Value = NOTHING
    number: bool | int | float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """The operators from `opens` to `closes`, both included, which compute in another mode.

    The values of one that is `is_closed` (vmap) have dimensions that are not theirs outside of it,
    so that it cannot be cut.
    """

    opens: int
    closes: int
    is_closed: bool

    def holds(self, position: int) -> bool:
        """Tell whether an operator is in it, or opens or closes it."""
        return self.opens <= position <= self.closes


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """What a run showed of a tensor: statistics, and its elements where these decide the graph."""

    statistics: Statistics | None
    data: bytes | None = dataclasses.field(default=None, repr=False)
