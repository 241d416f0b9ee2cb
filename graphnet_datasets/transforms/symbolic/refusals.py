"""Dimensions that cannot vary, with the reasons."""

from __future__ import annotations

import dataclasses

from ...errors import TransformError
from ...sample import Sample
from .dimensions import Dimension, DimensionKind
from .probing import Failure


@dataclasses.dataclass(frozen=True)
class Refused:
    """A dimension that cannot vary, with the operator that prevents it and the reason.

    `position` is None and `operator` is "" if no single operator prevents it.
    """

    name: str
    kind: DimensionKind
    hint: int
    operator: str
    position: int | None
    reason: str


class FixedSizesError(TransformError):
    """Raised if no dimension of a graph can vary; `refused` contains the reason for each."""

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
    """Return the rejection of a dimension for a failure."""
    target = "" if failure.position < 0 else sample.ops[failure.position].target
    position = None if failure.position < 0 else failure.position
    return Refused(dimension.name, dimension.kind, dimension.hint, target, position, failure.error)
