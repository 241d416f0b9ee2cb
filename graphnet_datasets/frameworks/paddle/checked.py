"""The operators that may run in any process, and the kinds of their arguments.

Most of paddle's kernels, and the bindings in front of them, trust their operands: a dtype that is a
tensor, an axis of 2**31 or a divisor of zero ends the process. So the entries of operators that
real graphs use have the kinds of their arguments, in order (`paddle_args`), and `guards` compares
every call with them, whether it runs or only its shapes are inferred. All others are *unchecked*:
they run in processes that may be lost, or where the caller of `materialize` allows it.
`benchmarks/fuzz_operators.py` decides: a name that kills its process there gets a guard or loses
the fact.

Kinds: t tensor, n nothing, i integer, f number, b bool, s text, d dtype, p place; lists of integers
I, of numbers F, of tensors T, empty E. Several letters are alternatives; a tensor in the place of
numbers gives them, and is read and compared as they are.
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
"""The kinds of the arguments of each checked operator of paddle's core, by canonical name."""

_OTHERS = frozenset(
    {
        *PYTHON_OPERATORS, "paddle.Tensor.astype", "paddle.Tensor.detach", "paddle.Tensor.dtype",
        "paddle.cast", "paddle.arange", "paddle.to_tensor", "paddle.Tensor.reshape",
    }
)  # fmt: skip


def is_checked(operator: Operator) -> bool:
    """Tell whether an operator may run in any process.

    >>> from .operators import lookup
    >>> is_checked(lookup("paddle._C_ops.relu")), is_checked(lookup("paddle._C_ops.topk_grad"))
    (True, False)
    """
    return operator.name in KINDS or operator.name in _OTHERS
