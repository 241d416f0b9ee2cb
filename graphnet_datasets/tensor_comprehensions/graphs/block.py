"""Construction of a definition: lazily read values, and statements."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from ..language.builtins import arity_of
from ..language.lexer import WORDS
from ..language.printing import format_number
from ..language.types import SPELLINGS
from .subscripts import Subscript, reshaped

Subscripts = Sequence[Subscript]
Element = Callable[[Subscripts], str]

MAX_INLINED = 40
"""Number of operations above which an expression is stored before it is reused."""


class UnsupportedError(Exception):
    """Raised for a form of an operator that no rule covers; the operator runs in eager."""


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph, described by the expression for one of its elements.

    Attributes:
        dtype: name of the type in the language.
        element: return the source of the element at given subscripts.
        cost: number of operations in that source; 0 for an element of a stored tensor or its view.
        buffer: name of the stored tensor with exactly these elements in row-major order, or "".
        number: the value of a Python number, or None.
    """

    shape: tuple[int, ...]
    dtype: str
    element: Element
    cost: int = 0
    buffer: str = ""
    number: int | float | None = None

    def at(self, subscripts: Subscripts) -> str:
        """Return the element at subscripts of a shape to which this value is broadcast."""
        trailing = list(subscripts)[len(subscripts) - len(self.shape) :]
        zero = Subscript.constant(0)
        return self.element(
            [zero if n == 1 else e for e, n in zip(trailing, self.shape, strict=True)]
        )

    def as_type(self, dtype: str, subscripts: Subscripts) -> str:
        """Return the element at subscripts, converted to a type."""
        if self.number is not None and dtype in ("float32", "int32"):
            is_float = dtype == "float32"
            if is_float or isinstance(self.number, int):
                return number_text(float(self.number) if is_float else self.number)
        return converted(self.at(subscripts), self.dtype, dtype)

    def viewed(
        self, shape: Sequence[int], mapping: Callable[[Subscripts], Subscripts], buffer: str = ""
    ) -> Value:
        """Return a view that maps its subscripts to subscripts of this value."""
        element = self.element
        return Value(tuple(shape), self.dtype, lambda s: element(mapping(s)), self.cost, buffer)

    def reshaped(self, shape: Sequence[int]) -> Value:
        """Return this value with another shape of equal size."""
        new = tuple(shape)
        return self.viewed(new, lambda s: reshaped(s, self.shape, new), self.buffer)


def number_text(number: int | float) -> str:
    """Return a number as source, with parentheses around a negative number.

    >>> number_text(0.5), number_text(-3), number_text(float("inf"))
    ('0.5', '(-3)', '1e999')
    """
    text = format_number(number)
    return f"({text})" if text.startswith("-") else text


def converted(text: str, old: str, new: str) -> str:
    """Return the source of a conversion between types."""
    return text if old == new else f"{new}({text})"


class Block:
    """A definition under construction.

    Attributes:
        name: name of the definition.
        parameters: name, type and shape of each input.
        statements: source of each statement.
        num_contractions: number of statements that are contractions.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: list[tuple[str, str, tuple[int, ...]]] = []
        self.statements: list[str] = []
        self.num_contractions = 0
        self._names: set[str] = set()

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Value:
        """Add an input."""
        unique = self._unique_name(name)
        self.parameters.append((unique, dtype, tuple(shape)))
        return self._stored(unique, shape, dtype)

    def store(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        element: Callable[[list[Subscript], list[Subscript]], str],
        *,
        reductions: Sequence[int] = (),
        operator: str = "=",
    ) -> Value:
        """Add a statement and return the tensor that it writes.

        Args:
            element: function from output and reduction subscripts to the right-hand side.
            reductions: extents of the reduction indices.
        """
        unique = self._unique_name(name)
        extents = {f"i{n}": extent for n, extent in enumerate(shape)}
        inner = {f"r{n}": extent for n, extent in enumerate(reductions)}
        subscripts = [Subscript.index(index, extent) for index, extent in extents.items()]
        reduced = [Subscript.index(index, extent) for index, extent in inner.items()]
        text = element(subscripts, reduced)
        left = f"{unique}({', '.join(extents)})" if extents else unique
        all_extents = {**extents, **inner}
        ranges = ", ".join(
            f"{index} in 0:{extent}"
            for index, extent in all_extents.items()
            if index in extents or extent > 1
        )
        if inner and all(extent == 1 for extent in inner.values()):
            operator = "="
        where = f" where {ranges}" if ranges else ""
        self.statements.append(f"{left} {operator} {text}{where}")
        return self._stored(unique, shape, dtype)

    def stored(self, value: Value, name: str = "t") -> Value:
        """Return the value with elements that are only loads; store it if necessary."""
        if value.cost == 0:
            return value
        return self.store(name, value.shape, value.dtype, lambda s, _: value.element(s))

    def once(self, value: Value) -> Value:
        """Return the value in a form that may be used several times in an expression."""
        return self.stored(value) if value.cost > 2 else value

    def output(self, value: Value, name: str) -> Value:
        """Return the value in its own tensor, written by a statement of this block."""
        written = {statement.split("(")[0].split(" ")[0] for statement in self.statements}
        if value.buffer in written:
            return value
        return self.store(name, value.shape, value.dtype, lambda s, _: value.element(s))

    def text(self, outputs: Sequence[Value]) -> str:
        """Return the source of the definition."""
        parameters = ", ".join(
            f"{dtype}{f'({_listed(shape)})' if shape else ''} {name}"
            for name, dtype, shape in self.parameters
        )
        returns = ", ".join(dict.fromkeys(value.buffer for value in outputs))
        body = "\n".join(f"    {statement}" for statement in self.statements)
        return f"def {self.name}({parameters}) -> ({returns}) {{\n{body}\n}}"

    def _stored(self, name: str, shape: Sequence[int], dtype: str) -> Value:
        def element(subscripts: Subscripts) -> str:
            return (
                f"{name}({_listed([subscript.text for subscript in subscripts])})"
                if subscripts
                else name
            )

        return Value(tuple(shape), dtype, element, 0, name)

    def _unique_name(self, name: str) -> str:
        """Return an unused name that the language accepts."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", name)[:60] or "t"
        if base[0].isdigit() or base in WORDS or base in SPELLINGS or arity_of(base) is not None:
            base = f"t_{base}"
        if re.fullmatch(r"[ir]\d+", base):
            base += "_"
        number, candidate = 1, base
        while candidate in self._names or arity_of(candidate) is not None:
            number, candidate = number + 1, f"{base}_{number}"
        self._names.add(candidate)
        return candidate


def _listed(items: Sequence[object]) -> str:
    return ", ".join(str(item) for item in items)
