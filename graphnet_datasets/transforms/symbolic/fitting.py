"""Fitting of expressions over symbols to values at several points.

A row contains the values of a dimension at several sizes of the symbols. Candidates are
`a*x + d`, `a*((x + b)//c) + d`, `k*y**2 + d` and integer polynomials of degree two over one symbol,
and sums and products of these over several symbols. A fit must reproduce all values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ...errors import SymbolError
from ...sample.symbols import Dim, evaluate

Row: TypeAlias = tuple[int, ...]
"""Values of a number at each point."""

_MAX_DIVISOR = 4096
_LARGEST_OFFSET = 3


class Fitter:
    """Fits expressions to rows.

    `points[0]` are the sizes of the capture; each symbol varies alone in some other points.

    >>> sizes = [{"s": 8, "b": 2}, {"s": 9, "b": 2}, {"s": 11, "b": 2}, {"s": 8, "b": 3}]
    >>> fitter = Fitter(sizes)
    >>> fitter.fit((16, 18, 22, 24)), fitter.fit((4, 5, 6, 4)), fitter.fit((7, 7, 7, 7))
    ('s*b', '(s + 1)//2', 7)
    """

    def __init__(self, points: Sequence[Mapping[str, int]]) -> None:
        self.points = tuple(points)
        base = self.points[0]
        self.columns: dict[str, Row] = {
            name: tuple(point[name] for point in self.points) for name in base
        }
        self._solo = {
            name: [
                place
                for place, point in enumerate(self.points)
                if all(point[other] == base[other] for other in base if other != name)
            ]
            for name in base
        }
        self._known: dict[Row, Dim | None] = {}

    def constant(self, number: int) -> Row:
        """Return the row of a constant."""
        return (number,) * len(self.points)

    def fit(self, row: Row) -> Dim | None:
        """Return an integer or an expression with the values of the row, or None."""
        if row not in self._known:
            if len(set(row)) == 1:
                self._known[row] = row[0]
            else:
                self._known[row] = next(self._fit(row, tuple(self.columns)), None)
        return self._known[row]

    def _fit(self, row: Row, names: Sequence[str]) -> Iterator[str]:
        for text in self._candidates(row, names):
            try:
                if self.evaluate(text) == row:
                    yield text
            except SymbolError:
                continue

    def evaluate(self, dim: Dim) -> Row:
        """Return the values of an expression at all points."""
        return tuple(evaluate(dim, point) for point in self.points)

    def _candidates(self, row: Row, names: Sequence[str]) -> Iterator[str]:
        varying = [name for name in names if len({row[place] for place in self._solo[name]}) > 1]
        if not varying:
            return
        name, others = varying[0], varying[1:]
        places = self._solo[name]
        column = [self.columns[name][place] for place in places]
        for factor, part, offset in _fit_one(name, column, [row[place] for place in places]):
            if not others:
                yield _sum(_product(str(factor), part), offset)
                continue
            values = self.evaluate(part)
            rest = [number - offset for number in row]
            if all(
                value and not number % value for number, value in zip(rest, values, strict=True)
            ):
                quotient = tuple(n // v for n, v in zip(rest, values, strict=True))
                for text in self._fit(quotient, others):
                    yield _sum(_product(part, text), offset)
            difference = tuple(n - factor * v for n, v in zip(row, values, strict=True))
            for text in self._fit(difference, others):
                yield f"{_product(str(factor), part)} + {text}"


def _fit_one(
    name: str, column: Sequence[int], row: Sequence[int]
) -> Iterator[tuple[int, str, int]]:
    """Yield `factor, part, offset` for which `factor*part + offset` may have the values."""
    pairs = sorted(set(zip(column, row, strict=True)))
    if len(pairs) < 2 or len({x for x, _ in pairs}) < len(pairs):
        return
    (x0, y0), (x1, y1) = pairs[0], pairs[-1]
    slope, rest = divmod(y1 - y0, x1 - x0)
    if not rest and all(y - y0 == slope * (x - x0) for x, y in pairs):
        yield slope, name, y0 - slope * x0
        return
    if abs(slope) > 1:
        yield from _squares(name, pairs)
    step = math.gcd(*(y - y0 for _, y in pairs))
    for factor in _divisors(step):
        for offset in sorted({0, 1, y0 % factor}) if factor > 1 else (0,):
            if any((y - offset) % factor for _, y in pairs):
                continue
            reduced = [(x, (y - offset) // factor) for x, y in pairs]
            for part in _quotients(name, reduced):
                yield factor, part, offset


def _quotients(name: str, pairs: Sequence[tuple[int, int]]) -> Iterator[str]:
    (x0, y0), (x1, y1) = pairs[0], pairs[-1]
    if y1 <= y0 or y1 - y0 >= x1 - x0:
        return
    estimate = (x1 - x0) / (y1 - y0)
    divisors: list[tuple[bool, float, int, int]] = []
    for divisor in range(2, min(_MAX_DIVISOR, 2 * (x1 - x0) + 2)):
        low = max(divisor * y - x for x, y in pairs)
        high = min(divisor * y - x + divisor - 1 for x, y in pairs)
        if low <= high:
            is_odd = divisor & (divisor - 1) != 0
            divisors.append((is_odd, abs(divisor - estimate), divisor, _offset(low, high, divisor)))
    for _, _, divisor, offset in sorted(divisors)[:_LARGEST_OFFSET]:
        inner = name if not offset else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
        yield f"({inner})//{divisor}" if offset else f"{name}//{divisor}"


def _offset(low: int, high: int, divisor: int) -> int:
    """Return the most likely valid offset: rounding down, rounding up, or a small number."""
    for likely in (0, divisor - 1, -1, 1):
        if low <= likely <= high:
            return likely
    return low if abs(low) < abs(high) else high


def _squares(name: str, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str, int]]:
    if len(pairs) < 3:
        return
    for offset in range(_LARGEST_OFFSET):
        shares = [y - offset for _, y in pairs]
        if min(shares) < 1:
            continue
        for factor in _divisors(math.gcd(*shares)):
            roots = [math.isqrt(share // factor) for share in shares]
            if any(
                factor * root * root != share for root, share in zip(roots, shares, strict=True)
            ):
                continue
            for inner in (
                _fit_one(name, [x for x, _ in pairs], roots) if roots[0] != roots[-1] else ()
            ):
                text = _sum(_product(str(inner[0]), inner[1]), inner[2])
                yield factor, f"({text})**2", offset
    (x0, y0), (x1, y1), (x2, y2) = pairs[0], pairs[len(pairs) // 2], pairs[-1]
    top = (y2 - y0) * (x1 - x0) - (y1 - y0) * (x2 - x0)
    bottom = (x2 - x0) * (x1 - x0) * (x2 - x1)
    if bottom and not top % bottom and top:
        square = top // bottom
        line = (y1 - y0) - square * (x1 * x1 - x0 * x0)
        if not line % (x1 - x0):
            linear = line // (x1 - x0)
            text = f"{_product(str(square), f'{name}**2')} + {linear}*{name}"
            yield 1, f"({text})", y0 - square * x0 * x0 - linear * x0


def _divisors(number: int) -> list[int]:
    number = abs(number)
    if number > 10**9:
        return [1, number]
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if not number % divisor]
    return sorted({*small, *(number // divisor for divisor in small)})[:64] or [1]


def _product(left: str, right: str) -> str:
    if left == "1":
        return right
    if right == "1":
        return left
    return f"{_grouped(left)}*{_grouped(right)}"


def _grouped(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _sum(left: str, offset: int) -> str:
    if not offset:
        return left
    return f"{left} {'+' if offset > 0 else '-'} {abs(offset)}"
