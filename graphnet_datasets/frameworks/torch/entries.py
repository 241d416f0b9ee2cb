"""The table's entry of every operator of a sample."""

from __future__ import annotations

from ...errors import UnknownOperatorError
from ...sample import Sample
from .operators import Operator, lookup


def entries_of(sample: Sample) -> tuple[Operator, ...]:
    """Return the entry of each operator, in order.

    Raises:
        UnknownOperatorError: an operator is not in the table; the message says where it stands.
    """
    entries = []
    for position, op in enumerate(sample.ops):
        try:
            entries.append(lookup(op.target))
        except UnknownOperatorError as error:
            raise UnknownOperatorError(
                f"Op {position} of `{sample.id}` cannot run: {error}"
            ) from error
    return tuple(entries)
