"""The operators that a paddle sample may call: names without paddle, callables with it.

A target is a canonical name: `paddle._C_ops.conv2d` for an operator of paddle's core, a few public
functions and tensor methods that GraphNet's captures contain, and Python's operators.

`operator.getitem` takes one result of an operator that gives several. Where paddle's eager mode
gives back a bare tensor because it hides the intermediate results (`dropout`, `layer_norm`), item
0 is that tensor and the others are None, so that a sample reads the same in both modes.
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
"""Operators that take a running mean and variance (arguments 1 and 2), which are buffers."""

_PUBLIC = ("paddle.arange", "paddle.cast", "paddle.to_tensor")
_METHODS = ("paddle.Tensor.astype", "paddle.Tensor.detach", "paddle.Tensor.reshape")
_ATTRIBUTES = ("paddle.Tensor.dtype",)


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """What is known of an operator without importing paddle.

    `is_inplace`: it writes into an argument. `is_random`: it may draw random numbers.
    """

    name: str
    kind: Literal["function", "method", "attribute"] = "function"
    is_inplace: bool = False
    is_random: bool = False
    is_state: bool = False


def _take(value: Any, index: Any) -> Any:
    """Return one result of an operator that gives several (see the module's text)."""
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
"""Python's operators on tensors; none of them works on text or builds a container."""


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
"""Every operator by its canonical name."""


def canonical(name: str) -> str:
    """Return the canonical name of a target, as text or programs may spell it.

    >>> canonical("pd_op.relu"), canonical("paddle.core.eager.ops.relu")
    ('paddle._C_ops.relu', 'paddle._C_ops.relu')
    """
    for prefix in ("pd_op.", "paddle.core.eager.ops.", "paddle.base.core.eager.ops."):
        if name.startswith(prefix):
            return CORE + name.removeprefix(prefix)
    return name


def lookup(name: str) -> Operator:
    """Return the operator of a canonical name.

    Raises:
        UnknownOperatorError: the table has no such operator.

    >>> lookup("paddle._C_ops.dropout").is_random
    True
    """
    found = OPERATORS.get(name)
    if found is None:
        raise UnknownOperatorError(
            f"`{name[:120]}` is not in paddle's operator table. {UNKNOWN_ADVICE}"
        )
    return found


def mutates(op: Op) -> bool:
    """Tell whether this call writes to one of its arguments.

    >>> mutates(Op("paddle._C_ops.relu_")), mutates(Op("paddle._C_ops.relu"))
    (True, False)
    """
    if op.target in BATCH_NORMS:
        # is_test and use_global_stats: without both, running mean and variance are updated.
        return op.args[5:6] != (True,) and op.args[9:10] != (True,)
    return lookup(op.target).is_inplace


def draws_random_numbers(op: Op) -> bool:
    """Tell whether this call may draw random numbers.

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
    """Return whether a random operator is a dropout whose probability is the literal 0.

    >>> drops_nothing(Op("paddle._C_ops.dropout", ("x", None, 0.0, False)))
    True
    """
    position = _RATE_POSITION.get(op.target.removeprefix(CORE))
    if position is None or len(op.args) <= position:
        return False
    rate = op.args[position]
    return type(rate) in (int, float) and rate == 0


def resolve(found: Operator) -> Callable[..., Any]:
    """Return what an operator of the table calls in the installed paddle.

    Raises:
        MaterializeError: the installed paddle does not have it.
    """
    callables = _callables()
    if found.name not in callables:
        import paddle.version

        raise MaterializeError(
            f"`{found.name}` does not exist in the installed paddle {paddle.version.full_version}. "
            "Install the version that the sample was captured with."
        )
    return callables[found.name]


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `argmax` or `argmin` as programs have it: `x, axis, keepdims, flatten, dtype`.

    Paddle's function takes no `flatten` but an axis of None, and ends the process on a fifth
    argument, though its description names five.
    """

    def call(x: Any, axis: Any, keepdims: Any, flatten: Any, dtype: Any) -> Any:
        return function(x, None if flatten else axis, keepdims, dtype)

    return call


def _unique(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `unique`, whose static function takes an eager call's arguments and `is_sorted`.

    Without `is_sorted` it reads beyond its arguments and ends the process.
    """

    def call(*arguments: Any) -> Any:
        import paddle

        return function(*arguments, *(() if paddle.in_dynamic_mode() else (True,)))

    return call


@functools.cache
def _callables() -> dict[str, Callable[..., Any]]:
    """Map canonical names to callables; only names of the table above are ever looked up."""
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
