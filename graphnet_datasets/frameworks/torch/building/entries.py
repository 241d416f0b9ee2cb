"""The table's entry of every operator of a sample, and what stands for one that it lacks."""

from __future__ import annotations

from ....errors import UnknownOperatorError
from ....sample import CustomOperator, Op, Sample
from ....sample.per_sample import PerSample
from ..operators import Operator, lookup


def custom_operator_of(sample: Sample, op: Op) -> CustomOperator | None:
    """Return the custom operator that an operator calls, None where it calls another."""
    return sample.custom_operators_by_target.get(op.target)


def called_custom_operators(sample: Sample) -> tuple[CustomOperator, ...]:
    """Return the custom operators that the graph calls, each once, in order of their first call."""
    found = (custom_operator_of(sample, op) for op in sample.ops)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def entry_of(sample: Sample, op: Op) -> Operator:
    """Return the table's entry of an operator, or an entry that says what a custom one is.

    An entry of a custom operator cannot be resolved: see `custom_operators`.

    Raises:
        UnknownOperatorError: it is neither.
    """
    custom = custom_operator_of(sample, op)
    if custom is not None:
        return Operator(op.target, "function", is_inplace="!" in custom.schema)
    return lookup(op.target)


def entries_of(sample: Sample) -> tuple[Operator, ...]:
    """Return the entry of each operator, in order.

    Raises:
        UnknownOperatorError: an operator is not in the table, and its source does not come with the
            sample; the message says where it stands.
    """
    known = _KNOWN.get(sample)
    if known is not None:
        return known
    entries = []
    for position, op in enumerate(sample.ops):
        try:
            entries.append(entry_of(sample, op))
        except UnknownOperatorError as error:
            raise UnknownOperatorError(
                f"Op {position} of `{sample.id}` cannot run: {error}"
            ) from error
    return _KNOWN.put(sample, tuple(entries))


_KNOWN = PerSample[tuple[Operator, ...]]()
"""The entries of samples that were asked for: each is looked through several times."""
