"""Syntax tree of a definition, before names and types are resolved."""

from __future__ import annotations

import dataclasses

from .spans import Span
from .types import ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: int | float
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Name:
    """A name without parentheses: an index, a size, a scalar or a name defined by `where`."""

    text: str
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Apply:
    """`name(arguments)`: an element of a tensor or a function call."""

    name: Name
    arguments: tuple[Node, ...]
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class SizeOf:
    """`T.k`."""

    name: Name
    dimension: int
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Convert:
    """`type(operand)`."""

    type: ScalarType
    operand: Node
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Prefix:
    """`-x` or `!x`."""

    operator: str
    operand: Node
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Infix:
    """An operator between two operands; also `min(a, b)` and `max(a, b)`."""

    operator: str
    left: Node
    right: Node
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? positive : negative`."""

    condition: Node
    positive: Node
    negative: Node
    span: Span


Node = Number | Name | Apply | SizeOf | Convert | Prefix | Infix | Conditional


@dataclasses.dataclass(frozen=True, slots=True)
class RangeClause:
    """`name in begin : end`."""

    name: Name
    begin: Node
    end: Node
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class LetClause:
    """`name = value`."""

    name: Name
    value: Node


@dataclasses.dataclass(frozen=True, slots=True)
class ExistsClause:
    """`exists value`."""

    value: Node


Clause = RangeClause | LetClause | ExistsClause


@dataclasses.dataclass(frozen=True, slots=True)
class StatementSyntax:
    """One statement; the left side of a scatter has subscripts that are not plain names."""

    output: Name
    subscripts: tuple[Node, ...]
    operator: str
    value: Node
    library_call: Apply | None
    clauses: tuple[Clause, ...]
    span: Span

    @property
    def is_scatter(self) -> bool:
        """True if a subscript on the left side is not a plain name."""
        return not all(isinstance(subscript, Name) for subscript in self.subscripts)

    @property
    def indices(self) -> tuple[Name, ...]:
        """Plain names on the left side."""
        return tuple(node for node in self.subscripts if isinstance(node, Name))


@dataclasses.dataclass(frozen=True, slots=True)
class VariableSyntax:
    """A parameter or return; None for a return without type or sizes."""

    name: Name
    type: ScalarType | None
    dimensions: tuple[Name | Number, ...] | None
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class DefinitionSyntax:
    """One `def`."""

    name: Name
    parameters: tuple[VariableSyntax, ...]
    returns: tuple[VariableSyntax, ...]
    statements: tuple[StatementSyntax, ...]
    span: Span
