"""Affine integer expressions of the indices of one statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * index)` with non-zero coefficients, sorted by index.

    >>> str(Affine.of({"w": 2, "kw": 1}, -1)), Affine.of({"w": 2}, 1).bounds({"w": (0, 4)})
    ('kw + 2*w - 1', (1, 7))
    """

    coefficients: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(coefficients: Mapping[str, int], constant: int = 0) -> Affine:
        """Return the normal form for coefficients and a constant."""
        terms = sorted(
            (name, coefficient) for name, coefficient in coefficients.items() if coefficient
        )
        return Affine(tuple(terms), constant)

    @staticmethod
    def index(name: str) -> Affine:
        """Return the expression that is a single index."""
        return Affine(((name, 1),))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the indices that occur."""
        return tuple(name for name, _ in self.coefficients)

    @property
    def is_constant(self) -> bool:
        """True if no index occurs."""
        return not self.coefficients

    def coefficient(self, name: str) -> int:
        """Return the coefficient of an index, or 0 if the index does not occur."""
        return dict(self.coefficients).get(name, 0)

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.coefficients, self.constant + other)
        sums = dict(self.coefficients)
        for name, coefficient in other.coefficients:
            sums[name] = sums.get(name, 0) + coefficient
        return Affine.of(sums, self.constant + other.constant)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other)

    def __neg__(self) -> Affine:
        return self * -1

    def __mul__(self, factor: int) -> Affine:
        scaled = {name: coefficient * factor for name, coefficient in self.coefficients}
        return Affine.of(scaled, self.constant * factor)

    def bounds(self, box: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Return the smallest and largest value over a box; both are attained.

        Args:
            box: `(begin, end)` for each index, `end` excluded. Intervals must not be empty.
        """
        least = greatest = self.constant
        for name, coefficient in self.coefficients:
            begin, end = box[name]
            ends = (coefficient * begin, coefficient * (end - 1))
            least, greatest = least + min(ends), greatest + max(ends)
        return least, greatest

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the value for the given index values."""
        return self.constant + sum(
            coefficient * values[name] for name, coefficient in self.coefficients
        )

    def __str__(self) -> str:
        text = ""
        for name, factor in self.coefficients:
            magnitude = "" if abs(factor) == 1 else f"{abs(factor)}*"
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            text += f"{sign}{magnitude}{name}"
        if not text:
            return str(self.constant)
        if self.constant:
            text += f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text
