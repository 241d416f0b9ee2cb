"""Typing of syntax trees: resolved names, joined types and explicit conversions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import cast as static_cast

from .builtins import arity_of
from .expressions import (
    COMPARISONS,
    Access,
    Binary,
    BinaryOperator,
    Call,
    Cast,
    Constant,
    Expression,
    Index,
    Select,
    Size,
    Unary,
    cast,
)
from .limits import MAX_DEPTH, MAX_NODES
from .spans import Span, failure
from .syntax import Apply, Conditional, Convert, Infix, Name, Node, Number, Prefix, SizeOf
from .types import BOOL, FLOAT32, INT32, ScalarType, join


@dataclasses.dataclass(slots=True)
class TensorName:
    """Type and rank of a tensor, as visible to expressions."""

    type: ScalarType
    rank: int


@dataclasses.dataclass(slots=True)
class Scope:
    """Names visible to an expression, and the uses found in it so far.

    Attributes:
        lets: expressions named by `where`, in order.
        num_lets: number of visible `lets`; a name sees only the names before it.
        indices: indices in order of first appearance.
        may_index: whether an unknown name is a new index; otherwise it is undefined.
        budget: remaining number of nodes.
        reading: an access to each tensor that is read.
        measured: tensors whose sizes are used.
    """

    tensors: Mapping[str, TensorName]
    sizes: frozenset[str]
    lets: dict[str, Node] = dataclasses.field(default_factory=dict)
    num_lets: int = 0
    indices: dict[str, Span] = dataclasses.field(default_factory=dict)
    may_index: bool = True
    may_access: bool = True
    budget: int = MAX_NODES
    depth: int = 0
    reading: dict[str, Access] = dataclasses.field(default_factory=dict)
    measured: set[str] = dataclasses.field(default_factory=set)


Typed = tuple[Expression, ScalarType]
"""A typed expression and its type in the language, which for a 16-bit float is not the node's."""


def typed(node: Node, scope: Scope) -> Typed:
    """Return the typed expression of a syntax tree and its type.

    Raises:
        DefinitionError: an unknown name, a wrong type, rank or arity; see the messages below.
    """
    scope.budget -= 1
    if scope.budget < 0:
        raise failure(
            f"The definition has more than {MAX_NODES} operations once `where` is inlined. "
            "Compute parts of it in separate statements.",
            node.span,
        )
    if scope.depth > MAX_DEPTH:
        raise failure(
            f"An expression is nested more than {MAX_DEPTH} deep once `where` is inlined. "
            "Compute parts of it in separate statements.",
            node.span,
        )
    scope.depth += 1
    try:
        return _typed(node, scope)
    finally:
        scope.depth -= 1


def _typed(node: Node, scope: Scope) -> Typed:
    match node:
        case Number():
            type_ = FLOAT32 if isinstance(node.value, float) else INT32
            return Constant(node.value, type_, node.span), type_
        case Name():
            return _name(node, scope)
        case Apply():
            return _apply(node, scope)
        case SizeOf():
            return _size_of(node, scope)
        case Convert():
            operand, operand_type = typed(node.operand, scope)
            if node.type == operand_type:
                return operand, operand_type
            if node.type.compute == node.type:
                return cast(operand, node.type), node.type
            if isinstance(operand, Cast) and operand.operand.type == node.type:
                return operand, node.type  # rounded to this type already
            return _computed(Cast(operand, node.type, node.span), node.type), node.type
        case Prefix():
            return _prefix(node, scope)
        case Infix():
            return _infix(node, scope)
        case Conditional():
            condition, condition_type = typed(node.condition, scope)
            require_bool(condition_type, node.condition, "The condition of `?:`")
            positive, negative, type_ = _joined(node.positive, node.negative, scope)
            select = Select(condition, positive, negative, positive.type, node.span)
            return select, type_


def integral(node: Node, scope: Scope, role: str) -> Expression:
    """Return the typed expression; raise if it is not an integer."""
    expression, type_ = typed(node, scope)
    if not type_.is_integral:
        raise failure(f"{role} must be an integer, but this is {type_}.", node.span)
    return expression


def require_bool(type_: ScalarType, node: Node, role: str) -> None:
    """Raise if the type is not bool."""
    if not type_.is_bool:
        raise failure(
            f"{role} must be a boolean, but this is {type_}. Compare it with something.",
            node.span,
        )


def _computed(node: Expression, type_: ScalarType) -> Expression:
    """Convert a loaded value to the type used for computation."""
    return cast(node, type_.compute)


def _joined(left: Node, right: Node, scope: Scope) -> tuple[Expression, Expression, ScalarType]:
    first, first_type = typed(left, scope)
    second, second_type = typed(right, scope)
    type_ = join(first_type, second_type)
    return cast(first, type_.compute), cast(second, type_.compute), type_


def _name(node: Name, scope: Scope) -> Typed:
    if node.text in scope.lets:
        place = list(scope.lets).index(node.text)
        if place >= scope.num_lets:
            raise failure(f"Undefined variable `{node.text}`: `where` defines it later.", node.span)
        outer, scope.num_lets = scope.num_lets, place
        try:
            return typed(scope.lets[node.text], scope)
        finally:
            scope.num_lets = outer
    if node.text in scope.tensors:
        tensor = scope.tensors[node.text]
        if tensor.rank:
            raise failure(
                f"Expected a scalar, but `{node.text}` has {tensor.rank} dimensions. Write its "
                "subscripts.",
                node.span,
            )
        return _access(node, (), scope, node.span)
    if node.text in scope.sizes:
        return Size(node.text, span=node.span), INT32
    if not scope.may_index and node.text not in scope.indices:
        raise failure(f"Undefined variable `{node.text}`.", node.span)
    if not scope.may_index:
        raise failure(
            f"A range cannot depend on the index `{node.text}`; use only sizes and numbers.",
            node.span,
        )
    scope.indices.setdefault(node.text, node.span)
    return Index(node.text, span=node.span), INT32


def _access(name: Name, subscripts: tuple[Expression, ...], scope: Scope, span: Span) -> Typed:
    if not scope.may_access:
        if not subscripts and scope.tensors[name.text].type.is_integral:
            # Its value may be given as a constant when the definition is specialised.
            access = Access(name.text, (), scope.tensors[name.text].type, span)
            return access, access.type
        raise failure(
            f"A range cannot depend on the tensor `{name.text}`; use only sizes and numbers.",
            span,
        )
    type_ = scope.tensors[name.text].type
    access = Access(name.text, subscripts, type_, span)
    scope.reading.setdefault(name.text, access)
    return _computed(access, type_), type_


def _apply(node: Apply, scope: Scope) -> Typed:
    name, count = node.name, len(node.arguments)
    tensor = scope.tensors.get(name.text)
    if tensor is not None:
        if tensor.rank == 0 and count:
            raise failure(f"Expected a tensor, but `{name.text}` is a scalar.", node.span)
        if tensor.rank != count:
            raise failure(
                f"Expected {tensor.rank} dimensions of `{name.text}` but found {count}.", node.span
            )
        subscripts = []
        for argument in node.arguments:
            subscripts.append(integral(argument, scope, "A subscript"))
        return _access(name, tuple(subscripts), scope, node.span)
    arity = arity_of(name.text)
    if arity is None:
        is_defined = (
            name.text in scope.sizes or name.text in scope.lets or name.text in scope.indices
        )
        reason = (
            "it is not a tensor"
            if is_defined
            else "there is no tensor, output or function of that name"
        )
        raise failure(f"Undefined variable `{name.text}`: {reason}.", name.span)
    if arity != count:
        raise failure(
            f"`{name.text}` takes {arity} argument{'s' * (arity > 1)} but got {count}.",
            node.span,
        )
    operands = [typed(argument, scope) for argument in node.arguments]
    type_ = FLOAT32
    for _, operand_type in operands:
        type_ = join(type_, operand_type)
    arguments = tuple(cast(operand, type_) for operand, _ in operands)
    return Call(name.text, arguments, type_, node.span), type_


def _size_of(node: SizeOf, scope: Scope) -> Typed:
    tensor = scope.tensors.get(node.name.text)
    if tensor is None:
        raise failure(f"Undefined variable `{node.name.text}`.", node.name.span)
    if node.dimension >= tensor.rank:
        raise failure(
            f"`{node.name.text}` has {tensor.rank} dimensions, so there is no "
            f"`{node.name.text}.{node.dimension}`; dimensions count from 0.",
            node.span,
        )
    scope.measured.add(node.name.text)
    return Size(node.name.text, node.dimension, span=node.span), INT32


def _prefix(node: Prefix, scope: Scope) -> Typed:
    operand, operand_type = typed(node.operand, scope)
    if node.operator == "!":
        require_bool(operand_type, node.operand, "The operand of `!`")
        return Unary("!", operand, BOOL, node.span), BOOL
    if isinstance(operand, Constant):
        return dataclasses.replace(operand, value=-operand.value, span=node.span), operand_type
    if operand_type.is_bool:
        return operand, BOOL  # -1 is odd, as 1 is
    return Unary("-", operand, operand.type, node.span), operand_type


def _infix(node: Infix, scope: Scope) -> Typed:
    operator = static_cast("BinaryOperator", node.operator)
    if operator in ("&&", "||"):
        sides = []
        for operand in (node.left, node.right):
            side, side_type = typed(operand, scope)
            require_bool(side_type, operand, f"An operand of `{operator}`")
            sides.append(side)
        return Binary(operator, sides[0], sides[1], BOOL, node.span), BOOL
    left, right, type_ = _joined(node.left, node.right, scope)
    if operator in COMPARISONS:
        return Binary(operator, left, right, BOOL, node.span), BOOL
    if type_.is_bool:
        # A bool is a one-bit unsigned integer, for which C and NumPy define other operations.
        wide = Binary(operator, cast(left, INT32), cast(right, INT32), INT32, node.span)
        return Cast(wide, BOOL, node.span), BOOL
    return Binary(operator, left, right, type_.compute, node.span), type_
