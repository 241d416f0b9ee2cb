"""A check that a sample calls only operators that may run in the caller's process."""

from __future__ import annotations

from ...errors import UncheckedOperatorError, UnknownOperatorError
from ...sample import Sample
from .checked import is_checked
from .operators import lookup


def check_operators(sample: Sample, *, allow_unchecked_operators: bool) -> None:
    """Raise if a sample calls unchecked operators and they are not allowed.

    Raises:
        UncheckedOperatorError: an operator is unchecked, and `allow_unchecked_operators` is false.
        UnknownOperatorError: an operator is not in the table.
    """
    if allow_unchecked_operators:
        return
    for position, op in enumerate(sample.ops):
        try:
            operator = lookup(op.target)
        except UnknownOperatorError as error:
            raise UnknownOperatorError(
                f"Op {position} (`{op.target}`) of `{sample.id}` cannot run: {error}"
            ) from error
        if not is_checked(operator):
            raise UncheckedOperatorError(
                f"Op {position} (`{op.target}`) of `{sample.id}` is not one of the checked "
                "operators: invalid operands could corrupt the memory of this process. Pass "
                "`allow_unchecked_operators=True` if you trust the sample, or leave it to "
                "`graphnet run` and `graphnet validate`, which run samples in processes of their "
                "own."
            )
