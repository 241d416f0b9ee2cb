"""Rules for Python integers: tensor sizes and the arithmetic on them.

In a graph with symbolic sizes, every symbol has a value during the walk. These rules avoid fake
tensors for such graphs. A number that is known only at run time is not a Python int, so no rule
accepts it.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping
from typing import Any

from .forms import Form, UnfitError
from .rule_operands import axis_of

LARGEST = 2**31
"""Arithmetic on larger numbers is left to torch, which has limits of its own."""


def _small(value: Any) -> int:
    if type(value) is not int or not -LARGEST < value < LARGEST:
        raise UnfitError
    return value


def size(input: Any, dim: Any) -> int:
    """Return the size of one axis."""
    if type(input) is not Form:
        raise UnfitError
    return input.shape[axis_of(input, dim)]


def add_up(args: Any) -> int:
    """Return the sum of numbers."""
    if type(args) not in (tuple, list) or not args:
        raise UnfitError
    return builtins.sum(map(_small, args))


def choose(condition: Any, then: Any, other: Any) -> Any:
    """Return `then` or `other`, depending on a boolean."""
    if type(condition) is not bool:
        raise UnfitError
    return _small(then) if condition else _small(other)


def negate(value: Any) -> bool:
    """Return the negation of a boolean."""
    if type(value) is not bool:
        raise UnfitError
    return not value


def assertion(value: Any, message: Any) -> None:
    """Accept a true assertion; torch raises the error for any other value."""
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


maximum, minimum = _of_pairs(max), _of_pairs(min)
floor_divide, modulo = _divided(operator.floordiv), _divided(operator.mod)

OVERLOAD_RULES: Mapping[str, Callable[..., Any]] = {
    "torch.ops.aten.sym_size.int": size,
    "torch.ops.aten._assert_scalar.default": assertion,
}
"""Rules for single overloads."""

PAIR_RULES: Mapping[str, Callable[[Any, Any], Any]] = {
    f"operator.{compute.__name__}": _of_pairs(compute)
    for compute in (
        *(operator.add, operator.sub, operator.mul),
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    )
}
"""Rules for two integers, of operators that have another rule for tensors."""
