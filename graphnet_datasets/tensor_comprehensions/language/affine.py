"""Affine integer expressions of the indices of one statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * index)`; no coefficient is 0 and indices are in order.

    >>> str(Affine.of({"w": 2, "kw": 1}, -1)), Affine.of({"w": 2}, 1).bounds({"w": (0, 4)})
    ('kw + 2*w - 1', (1, 7))
    """

    coefficients: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(coefficients: Mapping[str, int], constant: int = 0) -> Affine:
        """Return the normal form of a mapping of coefficients and a constant."""
        kept = sorted((name, each) for name, each in coefficients.items() if each)
        return Affine(tuple(kept), constant)

    @staticmethod
    def index(name: str) -> Affine:
        """Return the index itself."""
        return Affine(((name, 1),))

    @property
    def names(self) -> tuple[str, ...]:
        """The indices that occur."""
        return tuple(name for name, _ in self.coefficients)

    @property
    def is_constant(self) -> bool:
        """Whether no index occurs."""
        return not self.coefficients

    def coefficient(self, name: str) -> int:
        """Return the coefficient of an index, 0 if it does not occur."""
        return dict(self.coefficients).get(name, 0)

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.coefficients, self.constant + other)
        sums = dict(self.coefficients)
        for name, each in other.coefficients:
            sums[name] = sums.get(name, 0) + each
        return Affine.of(sums, self.constant + other.constant)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other)

    def __neg__(self) -> Affine:
        return self * -1

    def __mul__(self, factor: int) -> Affine:
        scaled = {name: each * factor for name, each in self.coefficients}
        return Affine.of(scaled, self.constant * factor)

    def bounds(self, box: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Return its least and greatest value, both reached, for indices in `box`.

        Args:
            box: `(begin, end)` for each index, the end excluded; none may be empty.
        """
        least = greatest = self.constant
        for name, each in self.coefficients:
            begin, end = box[name]
            ends = (each * begin, each * (end - 1))
            least, greatest = least + min(ends), greatest + max(ends)
        return least, greatest

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return its value where each index has the given one."""
        return self.constant + sum(each * values[name] for name, each in self.coefficients)

    def __str__(self) -> str:
        text = ""
        for name, each in self.coefficients:
            factor = "" if abs(each) == 1 else f"{abs(each)}*"
            sign = ("-" if each < 0 else "") if not text else (" - " if each < 0 else " + ")
            text += f"{sign}{factor}{name}"
        if not text:
            return str(self.constant)
        if self.constant:
            text += f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text
