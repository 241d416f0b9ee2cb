"""Operator table entries of a sample's operators, including its custom operators."""

from __future__ import annotations

from ....errors import UnknownOperatorError
from ....sample import CustomOperator, Op, Sample
from ....sample.per_sample import PerSample
from ..operators import Operator, lookup


def custom_operator_of(sample: Sample, op: Op) -> CustomOperator | None:
    """Return the custom operator that an op calls, or None."""
    return sample.custom_operators_by_target.get(op.target)


def called_custom_operators(sample: Sample) -> tuple[CustomOperator, ...]:
    """Return the distinct custom operators of the graph, in order of first call."""
    operators = (custom_operator_of(sample, op) for op in sample.iterate_ops())
    return tuple(dict.fromkeys(operator for operator in operators if operator is not None))


def entry_of(sample: Sample, op: Op) -> Operator:
    """Return the table entry of an op, or an entry created for its custom operator.

    The entry of a custom operator cannot be resolved; see `custom_operators`.

    Raises:
        UnknownOperatorError: If the op is neither in the table nor a custom operator.
    """
    custom = custom_operator_of(sample, op)
    if custom is not None:
        return Operator(op.target, "function", is_inplace="!" in custom.schema)
    return lookup(op.target)


def entries_of(sample: Sample) -> tuple[Operator, ...]:
    """Return the entry of each op, in order.

    Raises:
        UnknownOperatorError: If an op is neither in the table nor a custom operator; the message
            names its position.
    """
    cached_entries = _KNOWN.get(sample)
    if cached_entries is not None:
        return cached_entries
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
"""Cached entries per sample, since each sample is examined several times."""
