"""Definitions printed as source, with their own or with canonical names."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .affine import Affine
from .checked import CheckedDefinition, Statement
from .expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Index,
    Load,
    Select,
    Size,
    Unary,
    walk,
)


def format_number(value: int | float | bool) -> str:
    """Return a number as a literal of the language; infinity becomes an overflowing literal.

    >>> format_number(2), format_number(0.5), format_number(float("inf"))
    ('2', '0.5', '1e999')
    """
    if isinstance(value, float):
        if math.isinf(value):
            return "1e999" if value > 0 else "-1e999"
        if math.isnan(value):
            return "(1e999 - 1e999)"
        text = repr(value)
        return text if any(mark in text for mark in ".e") else f"{text}.0"
    return str(int(value))


class Printer:
    """Prints fully parenthesised expressions with renamed tensors and indices."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def name(self, name: str) -> str:
        """Return the new name for a name."""
        return self.names.get(name, name)

    def expression(self, node: Expression | Affine) -> str:
        """Return an expression as source, with implicit conversions written out."""
        match node:
            case Affine():
                return str(node)
            case Constant():
                text = format_number(node.value)
                literal = "float32" if isinstance(node.value, float) else "int32"
                return text if node.type.name == literal else f"{node.type}({text})"
            case Index():
                return self.name(node.name)
            case Size():
                size = "" if node.dimension is None else f".{node.dimension}"
                return f"{self.name(node.name)}{size}"
            case Unary():
                return f"{node.operator}({self.expression(node.operand)})"
            case Binary(operator="min" | "max"):
                return (
                    f"{node.operator}({self.expression(node.left)}, {self.expression(node.right)})"
                )
            case Binary():
                left, right = self.expression(node.left), self.expression(node.right)
                return f"({left} {node.operator} {right})"
            case Select():
                parts = (node.condition, node.positive, node.negative)
                condition, positive, negative = map(self.expression, parts)
                return f"({condition} ? {positive} : {negative})"
            case Cast():
                return f"{node.type}({self.expression(node.operand)})"
            case Call():
                return f"{node.function}({', '.join(map(self.expression, node.arguments))})"
            case Access() | Load():
                if not node.subscripts:
                    return self.name(node.tensor)
                return (
                    f"{self.name(node.tensor)}({', '.join(map(self.expression, node.subscripts))})"
                )


def canonical_text(
    definition: CheckedDefinition, constants: Mapping[str, int] | None = None
) -> str:
    """Return source that is equal for definitions that differ only in names and layout.

    The result is a definition with the same meaning. Constants are appended as comments.
    """
    names: dict[str, str] = {}
    for kind, tensors in (
        ("I", definition.parameters),
        ("O", definition.outputs),
        ("T", definition.temporaries),
    ):
        for number, tensor in enumerate(tensors):
            names[tensor.name] = f"{kind}{number}"
    for parameter in definition.parameters:
        for size in parameter.dimensions:
            if isinstance(size, str) and size not in names:
                names[size] = f"N{sum(assigned.startswith('N') for assigned in names.values())}"
    parameters = ", ".join(
        _typed(parameter.type.name, parameter.dimensions, names, parameter.name)
        for parameter in definition.parameters
    )
    outputs = ", ".join(
        _typed(output.type.name, output.dimensions or (), names, output.name)
        for output in definition.outputs
    )
    lines = [f"def f({parameters}) -> ({outputs}) {{"]
    lines += [f"  {_statement(statement, names)}" for statement in definition.statements]
    text = "\n".join([*lines, "}"])
    values = {names[name]: value for name, value in (constants or {}).items()}
    return text + "".join(f"\n# {name} = {values[name]}" for name in sorted(values))


def _typed(
    type_: str, dimensions: tuple[str | int, ...], names: Mapping[str, str], name: str
) -> str:
    sizes = ", ".join(
        str(names.get(size, size)) if isinstance(size, str) else str(size) for size in dimensions
    )
    return f"{type_}{f'({sizes})' if sizes else ''} {names[name]}"


def _statement(statement: Statement, names: Mapping[str, str]) -> str:
    indices = dict.fromkeys([*statement.subscripts, *statement.reductions])
    for bounds in statement.ranges:
        indices.setdefault(bounds.name)
    for expression in statement.exists:
        for node in _indices(expression):
            indices.setdefault(node)
    renamed = {name: f"i{number}" for number, name in enumerate(indices)}
    printer = Printer({**names, **renamed})
    left = left_side(statement, printer)
    operator = "" if statement.operator == "=" else statement.operator
    assign = f"{operator}={'!' if statement.initialises else ''}"
    ranges = sorted(
        f"{renamed[bounds.name]} in "
        f"{printer.expression(bounds.begin)}:{printer.expression(bounds.end)}"
        for bounds in statement.ranges
    )
    exists = [f"exists {printer.expression(condition)}" for condition in statement.exists]
    clauses = ", ".join([*ranges, *exists])
    where = f" where {clauses}" if clauses else ""
    return f"{left} {assign} {printer.expression(statement.value)}{where}"


def left_side(statement: Statement, printer: Printer) -> str:
    """Return the element that a statement writes as source."""
    if statement.target is not None:
        return printer.expression(statement.target)
    subscripts = ", ".join(printer.name(name) for name in statement.subscripts)
    return f"{printer.name(statement.output)}{f'({subscripts})' if subscripts else ''}"


def _indices(expression: Expression) -> list[str]:
    return [node.name for node in walk(expression) if isinstance(node, Index)]
