"""Dimensions that cannot vary, and why."""

from __future__ import annotations

import dataclasses

from ...errors import TransformError
from ...sample import Sample
from .dimensions import Dimension, DimensionKind
from .probing import Failure


@dataclasses.dataclass(frozen=True)
class Refused:
    """A dimension that cannot vary, the operator that stands in the way, and why.

    `position` is None and `operator` "" where no single operator does.
    """

    name: str
    kind: DimensionKind
    hint: int
    operator: str
    position: int | None
    reason: str


class FixedSizesError(TransformError):
    """No dimension of a graph can vary; `refused` says what stands in the way of each."""

    def __init__(self, sample: Sample, refused: tuple[Refused, ...]) -> None:
        self.refused = refused
        if not refused:
            super().__init__(
                f"`{sample.id}` has no data input with a dimension that could vary.",
                reason="no data input has a dimension that could vary",
            )
            return
        first = refused[0]
        where = f"operator {first.position} (`{first.operator}`)" if first.operator else "the graph"
        super().__init__(
            f"No dimension of `{sample.id}` can vary. With another `{first.name}` than "
            f"{first.hint}, {where} does not fit: {first.reason}",
            operator=first.operator,
            reason=f"its {first.kind} is fixed",
        )


def refusal_of(sample: Sample, dimension: Dimension, failure: Failure) -> Refused:
    """Return what is to be said of a dimension that failed."""
    target = "" if failure.position < 0 else sample.ops[failure.position].target
    position = None if failure.position < 0 else failure.position
    return Refused(dimension.name, dimension.kind, dimension.hint, target, position, failure.error)
