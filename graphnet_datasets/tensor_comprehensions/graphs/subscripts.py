"""Index expressions for lowering graphs, affine where possible.

A view of a tensor is a map of index expressions. Reshapes introduce divisions and remainders by
constants, which are resolved if ranges allow it: `(8*i + j) / 8` is `i` for `j` in 0:8.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..language import Affine


@dataclasses.dataclass(frozen=True, slots=True)
class Subscript:
    """An index expression and bounds of its values.

    Attributes:
        affine: the affine expression, or None if it is not affine.
        text: the expression in the language.
        least, greatest: bounds of the values.
        extents: names that occur, with the number of their values, from 0.
    """

    affine: Affine | None
    text: str
    least: int
    greatest: int
    extents: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def index(name: str, extent: int) -> Subscript:
        """Return an index with values in `0:extent`, or 0 if the extent is 1."""
        if extent == 1:
            return Subscript.constant(0)
        return _affine(Affine.index(name), ((name, extent),))

    @staticmethod
    def constant(value: int) -> Subscript:
        """Return a constant."""
        return _affine(Affine((), value), ())

    @property
    def is_constant(self) -> bool:
        """True for a constant."""
        return self.affine is not None and self.affine.is_constant

    def plus(self, other: Subscript) -> Subscript:
        """Return the sum."""
        extents = tuple(dict([*self.extents, *other.extents]).items())
        if self.affine is not None and other.affine is not None:
            return _affine(self.affine + other.affine, extents)
        least, greatest = self.least + other.least, self.greatest + other.greatest
        if other.is_constant and other.least == 0:
            return self
        if self.is_constant and self.least == 0:
            return other
        return Subscript(None, f"{self.text} + {other.text}", least, greatest, extents)

    def shifted(self, offset: int) -> Subscript:
        """Return the sum with an integer."""
        return self.plus(Subscript.constant(offset)) if offset else self

    def times(self, factor: int) -> Subscript:
        """Return the product with an integer."""
        if self.affine is not None:
            return _affine(self.affine * factor, self.extents)
        ends = sorted((self.least * factor, self.greatest * factor))
        return Subscript(None, f"({self.text}) * {factor}", ends[0], ends[1], self.extents)

    def over(self, divisor: int) -> Subscript:
        """Return the quotient by a positive integer, rounded down."""
        if divisor == 1:
            return self
        if self.least // divisor == self.greatest // divisor:
            return Subscript.constant(self.least // divisor)
        split = self._split(divisor)
        if split is not None:
            return _affine(split[0], self.extents)
        text = f"({self.text}) / {divisor}"
        least, greatest = self.least // divisor, self.greatest // divisor
        return Subscript(None, text, least, greatest, self.extents)

    def modulo(self, divisor: int) -> Subscript:
        """Return the remainder by a positive integer."""
        if self.least >= 0 and self.greatest < divisor:
            return self
        split = self._split(divisor)
        if split is not None:
            return _affine(split[1], self.extents)
        return Subscript(None, f"({self.text}) % {divisor}", 0, divisor - 1, self.extents)

    def _split(self, divisor: int) -> tuple[Affine, Affine] | None:
        """Return the quotient and the remainder if both are affine, else None."""
        if self.affine is None:
            return None
        whole = {
            name: coefficient // divisor
            for name, coefficient in self.affine.coefficients
            if not coefficient % divisor
        }
        rest = {
            name: coefficient
            for name, coefficient in self.affine.coefficients
            if coefficient % divisor
        }
        low = self.affine.constant % divisor
        remainder = _affine(Affine.of(rest, low), self.extents)
        if remainder.least < 0 or remainder.greatest >= divisor or remainder.affine is None:
            return None
        return Affine.of(whole, self.affine.constant // divisor), remainder.affine


def _affine(affine: Affine, extents: tuple[tuple[str, int], ...]) -> Subscript:
    used = tuple((name, extent) for name, extent in extents if affine.coefficient(name))
    least, greatest = affine.bounds({name: (0, extent) for name, extent in used})
    return Subscript(affine, str(affine), least, greatest, used)


def reshaped(
    subscripts: Sequence[Subscript], old: Sequence[int], new: Sequence[int]
) -> list[Subscript]:
    """Map subscripts of shape `new` to subscripts of the original shape `old`.

    Runs of dimensions with equal products are treated separately, so dimensions that the reshape
    does not change keep their subscripts.

    >>> i, j = Subscript.index("i", 6), Subscript.index("j", 4)
    >>> [subscript.text for subscript in reshaped([i, j], (2, 3, 4), (6, 4))]
    ['(i) / 3', '(i) % 3', 'j']
    """
    result: list[Subscript] = []
    place = start = 0
    while start < len(old):
        stop, size = start + 1, old[start]
        last, count = place, 1
        while count != size:
            if count < size:
                count *= new[last]
                last += 1
            else:
                size *= old[stop]
                stop += 1
        flat = Subscript.constant(0)
        for subscript, extent in zip(subscripts[place:last], new[place:last], strict=True):
            flat = flat.times(extent).plus(subscript)
        parts = []
        for extent in reversed(old[start:stop]):
            parts.append(flat.modulo(extent) if extent > 1 else Subscript.constant(0))
            flat = flat.over(extent)
        result += reversed(parts)
        start, place = stop, last
    return result
