"""Paddle operators that may run in any process, with the kinds of their arguments.

Most of Paddle's kernels and bindings do not validate their arguments: a tensor passed as a dtype,
an axis of 2**31 or a zero divisor crashes the process. For operators that occur in real graphs, the
operator table therefore lists the argument kinds in order (`paddle_args`). `guards` checks every
call against them, both before running it and before inferring its shapes. All other operators are
*unchecked*: they run in disposable processes, or where the caller of `materialize` allows them. The
classification is tested by `benchmarks/fuzz_operators.py`: an operator that crashes its process
there gets a guard or loses its `paddle_args`.

Kinds: t tensor, n None, i integer, f number, b bool, s string, d dtype, p place; I list of
integers, F list of numbers, T list of tensors, E empty list. Several letters are alternatives. A
tensor passed in place of numbers is read first; its values are then checked like literals.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...operators import OperatorValues
from .operator_names import IN_PLACE
from .operators import CORE, PYTHON_OPERATORS, Operator

_PLAIN = {name: tuple(kinds.split(".")) for name, kinds in OperatorValues("paddle_args").items()}
KINDS: Mapping[str, tuple[str, ...]] = {
    CORE + name: kinds
    for name, kinds in (
        *((f"{name}_", kinds) for name, kinds in _PLAIN.items() if name in IN_PLACE),
        *_PLAIN.items(),
    )
}
"""Argument kinds of each checked Paddle core operator, by canonical name."""

_OTHERS = frozenset(
    {
        *PYTHON_OPERATORS, "paddle.Tensor.astype", "paddle.Tensor.detach", "paddle.Tensor.dtype",
        "paddle.cast", "paddle.arange", "paddle.to_tensor", "paddle.Tensor.reshape",
    }
)  # fmt: skip


def is_checked(operator: Operator) -> bool:
    """Return whether an operator may run in any process.

    >>> from .operators import lookup
    >>> is_checked(lookup("paddle._C_ops.relu")), is_checked(lookup("paddle._C_ops.topk_grad"))
    (True, False)
    """
    return operator.name in KINDS or operator.name in _OTHERS
