"""The table of operators that a Paddle sample may call.

The names are available without paddle; resolving them to callables needs paddle. A target is a
canonical name: `paddle._C_ops.conv2d` for an operator of Paddle's core, the name of a public
function or tensor method that occurs in GraphNet's captures, or a Python operator.

`operator.getitem` selects one result of an operator with several results. Paddle's eager mode hides
the intermediate results of some operators (`dropout`, `layer_norm`) and returns a bare tensor. Item
0 is then that tensor and the other items are None, so that a sample means the same in both modes.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ...errors import UNKNOWN_ADVICE, MaterializeError, UnknownOperatorError
from ...sample import Op
from .operator_names import FUNCTION_NAMES, IN_PLACE, RANDOM_NAMES

CORE = "paddle._C_ops."
GETITEM = "operator.getitem"
BATCH_NORMS = frozenset({f"{CORE}batch_norm", f"{CORE}batch_norm_", f"{CORE}sync_batch_norm_"})
"""Operators with a running mean and variance (arguments 1 and 2), which are buffers."""

_PUBLIC = ("paddle.arange", "paddle.cast", "paddle.to_tensor")
_METHODS = ("paddle.Tensor.astype", "paddle.Tensor.detach", "paddle.Tensor.reshape")
_ATTRIBUTES = ("paddle.Tensor.dtype",)


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """Properties of an operator that are known without importing paddle.

    `is_inplace`: it writes to an argument. `is_random`: it may draw random numbers.
    """

    name: str
    kind: Literal["function", "method", "attribute"] = "function"
    is_inplace: bool = False
    is_random: bool = False
    is_state: bool = False


def _take(value: Any, index: Any) -> Any:
    """Return one result of an operator with several results; see the module docstring."""
    if isinstance(value, list | tuple):
        return value[index]
    if type(index) is int:
        return value if index == 0 else None
    return value[index]


PYTHON_OPERATORS: Mapping[str, Callable[..., Any]] = {
    GETITEM: _take,
    "operator.add": operator.add,
    "operator.sub": operator.sub,
    "operator.mul": operator.mul,
    "operator.matmul": operator.matmul,
    "operator.truediv": operator.truediv,
    "operator.floordiv": operator.floordiv,
    "operator.mod": operator.mod,
    "operator.pow": operator.pow,
    "operator.and_": operator.and_,
    "operator.or_": operator.or_,
    "operator.xor": operator.xor,
    "operator.lt": operator.lt,
    "operator.le": operator.le,
    "operator.gt": operator.gt,
    "operator.ge": operator.ge,
    "operator.eq": operator.eq,
    "operator.ne": operator.ne,
    "operator.neg": operator.neg,
    "operator.invert": operator.invert,
}
"""Python operators on tensors. None of them operates on strings or builds a container."""


def _table() -> dict[str, Operator]:
    table = {
        f"{CORE}{name}": Operator(
            f"{CORE}{name}",
            is_inplace=name.removesuffix("_") in IN_PLACE and name.endswith("_"),
            is_random=name in RANDOM_NAMES,
        )
        for name in FUNCTION_NAMES
    }
    for name in (*_PUBLIC, *PYTHON_OPERATORS):
        table[name] = Operator(name)
    for name in _METHODS:
        table[name] = Operator(name, "method")
    for name in _ATTRIBUTES:
        table[name] = Operator(name, "attribute")
    return table


OPERATORS: Mapping[str, Operator] = _table()
"""All operators by canonical name."""


def canonical(name: str) -> str:
    """Return the canonical name of a target from a source file or a program.

    >>> canonical("pd_op.relu"), canonical("paddle.core.eager.ops.relu")
    ('paddle._C_ops.relu', 'paddle._C_ops.relu')
    """
    for prefix in ("pd_op.", "paddle.core.eager.ops.", "paddle.base.core.eager.ops."):
        if name.startswith(prefix):
            return CORE + name.removeprefix(prefix)
    return name


def lookup(name: str) -> Operator:
    """Return the operator with a canonical name.

    Raises:
        UnknownOperatorError: the operator is not in the table.

    >>> lookup("paddle._C_ops.dropout").is_random
    True
    """
    entry = OPERATORS.get(name)
    if entry is None:
        raise UnknownOperatorError(
            f"`{name[:120]}` is not in paddle's operator table. {UNKNOWN_ADVICE}"
        )
    return entry


def mutates(op: Op) -> bool:
    """Return whether this call writes to one of its arguments.

    >>> mutates(Op("paddle._C_ops.relu_")), mutates(Op("paddle._C_ops.relu"))
    (True, False)
    """
    if op.target in BATCH_NORMS:
        # The running mean and variance are updated unless is_test or use_global_stats is set.
        return op.args[5:6] != (True,) and op.args[9:10] != (True,)
    return lookup(op.target).is_inplace


def draws_random_numbers(op: Op) -> bool:
    """Return whether this call may draw random numbers.

    >>> draws_random_numbers(Op("paddle._C_ops.uniform"))
    True
    """
    if op.target in (f"{CORE}dropout", f"{CORE}dropout_"):
        return op.args[3:4] != (True,)
    return lookup(op.target).is_random


_RATE_POSITION = {
    "dropout": 2, "dropout_": 2, "flash_attn": 5, "fused_bias_dropout_residual_layer_norm": 5,
    "fused_dropout_add": 3, "rnn": 5,
}  # fmt: skip


def drops_nothing(op: Op) -> bool:
    """Return whether the call is a dropout whose probability is the literal 0.

    >>> drops_nothing(Op("paddle._C_ops.dropout", ("x", None, 0.0, False)))
    True
    """
    position = _RATE_POSITION.get(op.target.removeprefix(CORE))
    if position is None or len(op.args) <= position:
        return False
    rate = op.args[position]
    return type(rate) in (int, float) and rate == 0


def resolve(operator: Operator) -> Callable[..., Any]:
    """Return the callable of an operator in the installed paddle.

    Raises:
        MaterializeError: the installed paddle does not have the operator.
    """
    callables = _callables()
    if operator.name not in callables:
        import paddle.version

        raise MaterializeError(
            f"`{operator.name}` does not exist in the installed paddle "
            f"{paddle.version.full_version}. Install the version that the sample was captured with."
        )
    return callables[operator.name]


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `argmax` or `argmin` to take the arguments of its program operation.

    The arguments are `x, axis, keepdims, flatten, dtype`. Paddle's function expresses `flatten` as
    an axis of None and crashes the process on a fifth argument, although its argument description
    lists five.
    """

    def call(x: Any, axis: Any, keepdims: Any, flatten: Any, dtype: Any) -> Any:
        return function(x, None if flatten else axis, keepdims, dtype)

    return call


def _unique(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `unique` to append the argument `is_sorted` in static mode.

    The static function expects `is_sorted` after the eager arguments; without it the function reads
    past the end of its arguments and crashes the process.
    """

    def call(*arguments: Any) -> Any:
        import paddle

        return function(*arguments, *(() if paddle.in_dynamic_mode() else (True,)))

    return call


@functools.cache
def _callables() -> dict[str, Callable[..., Any]]:
    """Map canonical names to callables; only names in the operator table are looked up."""
    import paddle
    import paddle._C_ops as core_operators

    core = vars(core_operators)
    callables = {f"{CORE}{name}": core[name] for name in FUNCTION_NAMES if name in core}
    callables |= {f"{CORE}{name}": _extreme(core[name]) for name in ("argmax", "argmin")}
    callables |= {f"{CORE}unique": _unique(core["unique"])}
    callables |= PYTHON_OPERATORS
    callables |= {
        "paddle.arange": paddle.arange,
        "paddle.cast": paddle.cast,
        "paddle.to_tensor": paddle.to_tensor,
        "paddle.Tensor.astype": lambda tensor, dtype: tensor.astype(dtype),
        "paddle.Tensor.detach": lambda tensor: tensor.detach(),
        "paddle.Tensor.reshape": lambda tensor, *shape: tensor.reshape(*shape),
        "paddle.Tensor.dtype": lambda tensor: tensor.dtype,
    }
    return callables
