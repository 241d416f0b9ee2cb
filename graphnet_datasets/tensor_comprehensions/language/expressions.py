"""Typed expressions, produced by the checker and consumed by compilers.

All conversions are explicit: both operands of a `Binary` have the same type, both branches of a
`Select` and the arguments of a `Call` have the type of the node, and the condition of a `Select` is
`bool`. A 16-bit float is only loaded and stored; it is converted to float32 (`Cast`) when it is
loaded. Integers wrap around in two's complement. `/` and `%` round towards minus infinity (`%`
takes the sign of the divisor, also for floats) and return 0 if the divisor is the integer 0. `min`
and `max` are `a < b ? a : b` and `a > b ? a : b`, so the second operand wins over a NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Literal

from .affine import Affine
from .spans import Span
from .types import BOOL, INT32, ScalarType

BinaryOperator = Literal[
    "+", "-", "*", "/", "%", "min", "max", "<", ">", "<=", ">=", "==", "!=", "&&", "||"
]
COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A number; floats may be `inf` or `nan`."""

    value: int | float | bool
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Index:
    """The value of a statement's index, an int32."""

    name: str
    type: ScalarType = INT32
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """A size: the name of an input's dimension, or `T.k` for any tensor; an int32.

    It occurs only in definitions; an instance has the number instead.
    """

    name: str
    dimension: int | None = None
    type: ScalarType = INT32
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, or `!x` for a bool."""

    operator: Literal["-", "!"]
    operand: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator with operands of equal type; comparisons return bool."""

    operator: BinaryOperator
    left: Expression
    right: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Select:
    """`condition ? positive : negative`; only the selected branch may be evaluated."""

    condition: Expression
    positive: Expression
    negative: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """A conversion to `type`; floats are truncated to integers, and bool means `!= 0`."""

    operand: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A built-in or registered function; `type`, float32 or float64, is also its arguments'
    type.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor with integral subscripts; only in definitions."""

    tensor: str
    subscripts: tuple[Expression, ...]
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """An element of a tensor in an instance.

    Subscripts are logical coordinates: subtract the tensor's origin to get the position in memory.
    An `Affine` subscript is in range wherever the load is executed. Any other expression is a
    gather, whose range is described by `checks`.

    Attributes:
        checks: for each dimension, "" if the subscript is known to be in range wherever the load is
            executed, "assumed" if that is an unchecked precondition, "clamp" if the subscript must
            be clamped to the dimension (`check_bounds=True`).
        is_guarded: a condition around the load excludes points of the statement's box that are out
            of range. The load must not be executed (or must be masked) at these points.
    """

    tensor: str
    subscripts: tuple[Affine | Expression, ...]
    type: ScalarType
    checks: tuple[Literal["", "assumed", "clamp"], ...] = ()
    is_guarded: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


Expression = Constant | Index | Size | Unary | Binary | Select | Cast | Call | Access | Load


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the operands of a node in order, without affine subscripts."""
    match node:
        case Unary() | Cast():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Select():
            return (node.condition, node.positive, node.negative)
        case Call():
            return node.arguments
        case Access():
            return node.subscripts
        case Load():
            return tuple(
                subscript for subscript in node.subscripts if not isinstance(subscript, Affine)
            )
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and its descendants in pre-order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def rebuild(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the node with `change` applied to each operand."""
    match node:
        case Unary() | Cast():
            return dataclasses.replace(node, operand=change(node.operand))
        case Binary():
            return dataclasses.replace(node, left=change(node.left), right=change(node.right))
        case Select():
            return dataclasses.replace(
                node,
                condition=change(node.condition),
                positive=change(node.positive),
                negative=change(node.negative),
            )
        case Call():
            return dataclasses.replace(node, arguments=tuple(map(change, node.arguments)))
        case Access():
            return dataclasses.replace(node, subscripts=tuple(map(change, node.subscripts)))
        case Load():
            return dataclasses.replace(
                node,
                subscripts=tuple(
                    subscript if isinstance(subscript, Affine) else change(subscript)
                    for subscript in node.subscripts
                ),
            )
        case _:
            return node


def cast(node: Expression, target: ScalarType) -> Expression:
    """Return the node converted to `target`; constants are converted immediately."""
    if node.type == target:
        return node
    if isinstance(node, Constant) and target.bits >= 32 and not node.type.is_bool:
        if target.is_float:
            return Constant(float(node.value), target, node.span)
        if node.type.is_integral and target.least() <= node.value <= target.greatest():
            return Constant(int(node.value), target, node.span)
    return Cast(node, target, node.span)


TRUE = Constant(True, BOOL)
