"""Inferred operator results, mode regions, and observed statistics, for all frameworks."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

from ..sample import Statistics, Value

Kind: TypeAlias = Literal["tensor", "number", "other"]

NOTHING = Value()


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """One result: a tensor with its `Value`, a Python number, or `other` (such as a tuple or None).

    Tensors and numbers that depend on a run are `other`.
    """

    kind: Kind
    value: Value = NOTHING
    number: bool | int | float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """A range of operators, from `opens` to `closes` inclusive, that compute in a different mode.

    In a region with `is_closed` (vmap), values have hidden dimensions, so the region must not be
    split.
    """

    opens: int
    closes: int
    is_closed: bool

    def holds(self, position: int) -> bool:
        """Return whether an operator is in the region; the operators that open and close it
        count."""
        return self.opens <= position <= self.closes


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """Observed statistics of a tensor, and its elements if the results depend on their values."""

    statistics: Statistics | None
    data: bytes | None = dataclasses.field(default=None, repr=False)
