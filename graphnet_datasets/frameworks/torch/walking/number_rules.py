"""Rules of `rules` for Python's integers: sizes of tensors, and what graphs compute of them.

They are what keeps the walk over a graph of symbolic sizes, each of which has a value by then, from
making tensors fake at all. Numbers that only a run tells are no integers of Python, and no rule
takes them.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping
from typing import Any

from .forms import Form, UnfitError
from .rule_operands import axis_of

LARGEST = 2**31
"""Of larger numbers torch is asked, where what is computed of them has its limits."""


def _small(value: Any) -> int:
    if type(value) is not int or not -LARGEST < value < LARGEST:
        raise UnfitError
    return value


def _size(input: Any, dim: Any) -> int:
    if type(input) is not Form:
        raise UnfitError
    return input.shape[axis_of(input, dim)]


def _sum(args: Any) -> int:
    if type(args) not in (tuple, list) or not args:
        raise UnfitError
    return builtins.sum(map(_small, args))


def _select(condition: Any, then: Any, other: Any) -> Any:
    if type(condition) is not bool:
        raise UnfitError
    return _small(then) if condition else _small(other)


def _not(value: Any) -> bool:
    if type(value) is not bool:
        raise UnfitError
    return not value


def _assert(value: Any, message: Any) -> None:
    """Only what is true: of the rest torch raises an error, with the message."""
    if type(value) is not bool or not value or type(message) is not str:
        raise UnfitError


def _of_pairs(compute: Callable[[int, int], Any]) -> Callable[[Any, Any], Any]:
    def rule(left: Any, right: Any) -> Any:
        return compute(_small(left), _small(right))

    return rule


def _divided(compute: Callable[[int, int], Any]) -> Callable[[Any, Any], Any]:
    def rule(left: Any, right: Any) -> Any:
        if _small(right) == 0:
            raise UnfitError
        return compute(_small(left), right)

    return rule


NUMBER_RULES: Mapping[str, Callable[..., Any]] = {
    "torch.ops.aten.sym_size.int": _size,
    "torch.sym_sum": _sum,
    "torch.sym_ite": _select,
    "torch.sym_not": _not,
    "torch.sym_max": _of_pairs(max),
    "torch.sym_min": _of_pairs(min),
    "torch.ops.aten._assert_scalar.default": _assert,
    "operator.floordiv": _divided(operator.floordiv),
    "operator.mod": _divided(operator.mod),
}
"""By the names that the table of operators keeps."""

PAIR_RULES: Mapping[str, Callable[[Any, Any], Any]] = {
    f"operator.{compute.__name__}": _of_pairs(compute)
    for compute in (
        *(operator.add, operator.sub, operator.mul),
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    )
}
"""Of operators that have another rule where one operand is a tensor."""
