"""Definitions as text again: with their own names, or with names that do not matter."""

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
    """Return a literal of the language; infinity is a number that overflows.

    >>> format_number(2), format_number(0.5), format_number(float("inf"))
    ('2', '0.5', '1e999')
    """
    if isinstance(value, float):
        if math.isinf(value):
            return "1e999" if value > 0 else "-1e999"
        if math.isnan(value):
            return "(1e999 - 1e999)"
        text = repr(value)
        return text if any(each in text for each in ".e") else f"{text}.0"
    return str(int(value))


class Printer:
    """Prints expressions with every operator in parentheses and names replaced."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def name(self, name: str) -> str:
        """Return the new name of a name."""
        return self.names.get(name, name)

    def expression(self, node: Expression | Affine) -> str:
        """Return an expression as text of the language, implicit conversions written out."""
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
    """Return a text that is the same for definitions which differ only in names and layout.

    It is a definition again, of the same meaning. Constants, if any, are appended as a comment.
    """
    names: dict[str, str] = {}
    for kind, tensors in (
        ("I", definition.parameters),
        ("O", definition.outputs),
        ("T", definition.temporaries),
    ):
        for number, each in enumerate(tensors):
            names[each.name] = f"{kind}{number}"
    for parameter in definition.parameters:
        for size in parameter.dimensions:
            if isinstance(size, str) and size not in names:
                names[size] = f"N{sum(each.startswith('N') for each in names.values())}"
    parameters = ", ".join(
        _typed(each.type.name, each.dimensions, names, each.name) for each in definition.parameters
    )
    outputs = ", ".join(
        _typed(each.type.name, each.dimensions or (), names, each.name)
        for each in definition.outputs
    )
    lines = [f"def f({parameters}) -> ({outputs}) {{"]
    lines += [f"  {_statement(each, names)}" for each in definition.statements]
    text = "\n".join([*lines, "}"])
    values = {names[name]: value for name, value in (constants or {}).items()}
    return text + "".join(f"\n# {name} = {values[name]}" for name in sorted(values))


def _typed(
    type_: str, dimensions: tuple[str | int, ...], names: Mapping[str, str], name: str
) -> str:
    sizes = ", ".join(
        str(names.get(each, each)) if isinstance(each, str) else str(each) for each in dimensions
    )
    return f"{type_}{f'({sizes})' if sizes else ''} {names[name]}"


def _statement(statement: Statement, names: Mapping[str, str]) -> str:
    indices = dict.fromkeys([*statement.subscripts, *statement.reductions])
    for each in statement.ranges:
        indices.setdefault(each.name)
    for expression in statement.exists:
        for node in _indices(expression):
            indices.setdefault(node)
    renamed = {name: f"i{number}" for number, name in enumerate(indices)}
    printer = Printer({**names, **renamed})
    subscripts = ", ".join(renamed[name] for name in statement.subscripts)
    left = f"{printer.name(statement.output)}{f'({subscripts})' if subscripts else ''}"
    operator = "" if statement.operator == "=" else statement.operator
    assign = f"{operator}={'!' if statement.initialises else ''}"
    ranges = sorted(
        f"{renamed[each.name]} in {printer.expression(each.begin)}:{printer.expression(each.end)}"
        for each in statement.ranges
    )
    exists = [f"exists {printer.expression(each)}" for each in statement.exists]
    clauses = ", ".join([*ranges, *exists])
    where = f" where {clauses}" if clauses else ""
    return f"{left} {assign} {printer.expression(statement.value)}{where}"


def _indices(expression: Expression) -> list[str]:

    return [node.name for node in walk(expression) if isinstance(node, Index)]
