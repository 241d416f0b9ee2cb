"""One definition while it is written: values that are read lazily, and statements."""

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
"""Operations of an expression above which it is stored before it is used again."""


class UnsupportedError(Exception):
    """An operator has a form that no rule covers, so that it stays with eager."""


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph, as what an element of it is.

    Attributes:
        dtype: the type's name in the language.
        element: the text of the element at given subscripts.
        cost: operations in that text; 0 is an element of a stored tensor or a view of it.
        buffer: the stored tensor with exactly these elements in row-major order, "" if there is
            none.
        number: its value if it is a Python number.
    """

    shape: tuple[int, ...]
    dtype: str
    element: Element
    cost: int = 0
    buffer: str = ""
    number: int | float | None = None

    def at(self, subscripts: Subscripts) -> str:
        """Return the element for subscripts of a shape that this value is broadcast to."""
        own = list(subscripts)[len(subscripts) - len(self.shape) :]
        zero = Subscript.constant(0)
        return self.element([zero if n == 1 else e for e, n in zip(own, self.shape, strict=True)])

    def as_type(self, dtype: str, subscripts: Subscripts) -> str:
        """Return the same converted to a type."""
        if self.number is not None and dtype in ("float32", "int32"):
            is_float = dtype == "float32"
            if is_float or isinstance(self.number, int):
                return number_text(float(self.number) if is_float else self.number)
        return converted(self.at(subscripts), self.dtype, dtype)

    def viewed(
        self, shape: Sequence[int], mapping: Callable[[Subscripts], Subscripts], buffer: str = ""
    ) -> Value:
        """Return a view whose element at given subscripts is this one's at the mapped ones."""
        element = self.element
        return Value(tuple(shape), self.dtype, lambda s: element(mapping(s)), self.cost, buffer)

    def reshaped(self, shape: Sequence[int]) -> Value:
        """Return this value in another shape of as many elements."""
        new = tuple(shape)
        return self.viewed(new, lambda s: reshaped(s, self.shape, new), self.buffer)


def number_text(number: int | float) -> str:
    """Return a number as text of the language; a negative one in parentheses.

    >>> number_text(0.5), number_text(-3), number_text(float("inf"))
    ('0.5', '(-3)', '1e999')
    """
    text = format_number(number)
    return f"({text})" if text.startswith("-") else text


def converted(text: str, old: str, new: str) -> str:
    """Return the text of a value of type `old` as one of type `new`."""
    return text if old == new else f"{new}({text})"


class Block:
    """A definition in the making.

    Attributes:
        name: the definition's name.
        parameters: name, type and shape of each input.
        statements: the text of each.
        num_contractions: how many statements are products.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: list[tuple[str, str, tuple[int, ...]]] = []
        self.statements: list[str] = []
        self.num_contractions = 0
        self._names: set[str] = set()

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Value:
        """Add an input."""
        own = self._named(name)
        self.parameters.append((own, dtype, tuple(shape)))
        return self._stored(own, shape, dtype)

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
            element: the right side for subscripts of the output and of the reductions.
            reductions: how many values each reduction index has.
        """
        own = self._named(name)
        extents = {f"i{n}": each for n, each in enumerate(shape)}
        inner = {f"r{n}": each for n, each in enumerate(reductions)}
        subscripts = [Subscript.index(each, extent) for each, extent in extents.items()]
        reduced = [Subscript.index(each, extent) for each, extent in inner.items()]
        text = element(subscripts, reduced)
        left = f"{own}({', '.join(extents)})" if extents else own
        all_extents = {**extents, **inner}
        ranges = ", ".join(
            f"{each} in 0:{extent}"
            for each, extent in all_extents.items()
            if each in extents or extent > 1
        )
        if inner and all(extent == 1 for extent in inner.values()):
            operator = "="
        where = f" where {ranges}" if ranges else ""
        self.statements.append(f"{left} {operator} {text}{where}")
        return self._stored(own, shape, dtype)

    def stored(self, value: Value, name: str = "t") -> Value:
        """Return the value as one whose elements are only loaded, storing it if need be."""
        if value.cost == 0:
            return value
        return self.store(name, value.shape, value.dtype, lambda s, _: value.element(s))

    def once(self, value: Value) -> Value:
        """Return the value as one that may be mentioned several times in an expression."""
        return self.stored(value) if value.cost > 2 else value

    def output(self, value: Value, name: str) -> Value:
        """Return the value with a tensor of its own that nothing else of the block reads into."""
        written = {each.split("(")[0].split(" ")[0] for each in self.statements}
        if value.buffer in written:
            return value
        return self.store(name, value.shape, value.dtype, lambda s, _: value.element(s))

    def text(self, outputs: Sequence[Value]) -> str:
        """Return the definition."""
        parameters = ", ".join(
            f"{dtype}{f'({_listed(shape)})' if shape else ''} {name}"
            for name, dtype, shape in self.parameters
        )
        returns = ", ".join(dict.fromkeys(each.buffer for each in outputs))
        body = "\n".join(f"    {each}" for each in self.statements)
        return f"def {self.name}({parameters}) -> ({returns}) {{\n{body}\n}}"

    def _stored(self, name: str, shape: Sequence[int], dtype: str) -> Value:
        def element(subscripts: Subscripts) -> str:
            return f"{name}({_listed([each.text for each in subscripts])})" if subscripts else name

        return Value(tuple(shape), dtype, element, 0, name)

    def _named(self, name: str) -> str:
        """Return a name that the language accepts and nothing else here has."""
        own = re.sub(r"[^A-Za-z0-9_]", "_", name)[:60] or "t"
        if own[0].isdigit() or own in WORDS or own in SPELLINGS or arity_of(own) is not None:
            own = f"t_{own}"
        if re.fullmatch(r"[ir]\d+", own):
            own += "_"
        number, tried = 1, own
        while tried in self._names or arity_of(tried) is not None:
            number, tried = number + 1, f"{own}_{number}"
        self._names.add(tried)
        return tried


def _listed(items: Sequence[object]) -> str:
    return ", ".join(str(each) for each in items)
