"""Typed expressions: what the checker makes of the text, and what a compiler reads.

All conversions are explicit: both operands of a `Binary` have the same type, both branches of a
`Select` have its type, the arguments of a `Call` have its type, and the condition of a `Select` is
`bool`. A 16-bit float is only ever loaded and stored: it is converted to float32 (`Cast`) where it
is loaded. Integers wrap around as two's complement; `/` and `%` round towards minus infinity (for
floats too `%` takes the sign of the divisor) and give 0 where the divisor is the integer 0. `Min`
and `max` are `a < b ? a : b` and `a > b ? a : b`, so that the second operand wins over a NaN.
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
    """A number of the given type; `inf` and `nan` occur as floats."""

    value: int | float | bool
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Index:
    """The value of an index of the statement, an int32."""

    name: str
    type: ScalarType = INT32
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """The size of an input's dimension by its name, or of any tensor as `T.k`; an int32.

    It occurs in definitions only: an instance has the number in its place.
    """

    name: str
    dimension: int | None = None
    type: ScalarType = INT32
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Unary:
    """`-x` or, of a bool, `!x`."""

    operator: Literal["-", "!"]
    operand: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Binary:
    """An operator of two operands of one type; comparisons give bool."""

    operator: BinaryOperator
    left: Expression
    right: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Select:
    """`condition ? positive : negative`; only the branch that is taken may be evaluated."""

    condition: Expression
    positive: Expression
    negative: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Cast:
    """The operand converted to `type`; a float to an integer truncates, to bool is `!= 0`."""

    operand: Expression
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A built-in or registered function; `type` is float32 or float64, and so are the arguments."""

    function: str
    arguments: tuple[Expression, ...]
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor; subscripts are integral expressions. In definitions only."""

    tensor: str
    subscripts: tuple[Expression, ...]
    type: ScalarType
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """An element of a tensor in an instance.

    Subscripts are logical coordinates: subtract the tensor's origin for the place in memory. An
    `Affine` one is in range wherever the load is executed; any other expression is a gather, of
    which `Load.checks` says what has to be done about its range.

    Attributes:
        checks: per dimension, "" where the subscript is known to be in range wherever the load is
            executed, "assumed" where it is a precondition that nobody checks, "clamp" where it
            has to be limited to the dimension (`check_bounds=True`).
        is_guarded: some points of the statement's box are out of range and are kept from this
            load by a condition around it, so that it must not be executed (or be masked) there.
    """

    tensor: str
    subscripts: tuple[Affine | Expression, ...]
    type: ScalarType
    checks: tuple[Literal["", "assumed", "clamp"], ...] = ()
    is_guarded: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


Expression = Constant | Index | Size | Unary | Binary | Select | Cast | Call | Access | Load


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the operands of a node in order; affine subscripts are none."""
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
            return tuple(each for each in node.subscripts if not isinstance(each, Affine))
        case _:
            return ()


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and all below it, each before its operands."""
    stack = [node]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(reversed(children(each)))


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
                    each if isinstance(each, Affine) else change(each) for each in node.subscripts
                ),
            )
        case _:
            return node


def cast(node: Expression, target: ScalarType) -> Expression:
    """Return the node converted to `target`, itself if it has that type; literals convert here."""
    if node.type == target:
        return node
    if isinstance(node, Constant) and target.bits >= 32 and not node.type.is_bool:
        if target.is_float:
            return Constant(float(node.value), target, node.span)
        if node.type.is_integral and target.least() <= node.value <= target.greatest():
            return Constant(int(node.value), target, node.span)
    return Cast(node, target, node.span)


TRUE = Constant(True, BOOL)
