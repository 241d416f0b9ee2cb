"""Recognition of products of matrices among reductions."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

from ..codegen.elements import Dim, Element, Nest, leaf
from ..codegen.plans import varies
from ..language.expressions import Binary, Cast, Constant, Expression, Select
from ..language.types import FLOAT32, ScalarType

MIN_EXTENT = 8
"""Smaller products are reductions without tensor cores, whose smallest tile is 16 by 16."""
_MAX_FACTORS = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Contraction:
    """A nest whose updates are sums of products of matrices.

    Attributes:
        batch, rows, columns: dimensions that both factors, only the left or only the right one
            depend on.
        factors: for each update, the left and the right factor of each product that it sums.
    """

    batch: tuple[Dim, ...]
    rows: tuple[Dim, ...]
    columns: tuple[Dim, ...]
    factors: tuple[tuple[tuple[Expression, Expression], ...], ...]

    @property
    def is_narrow(self) -> bool:
        """True if tensor cores read all factors in 16 bits."""
        return all(is_narrow(pair) for pairs in self.factors for pair in pairs)


def is_narrow(pair: tuple[Expression, Expression]) -> bool:
    """Return whether both factors of a product are read in the same 16-bit type."""
    return pair[0].type.bits == 16


def contraction_of(nest: Nest) -> Contraction | None:
    """Return a nest as a contraction, or None if it is something else or too small.

    A convolution is one as well: its rows are the positions in all images, and its left factor is a
    guarded read at the position plus the offset of the term.
    """
    if not nest.updates or math.prod(dim.extent for dim in nest.reductions) < MIN_EXTENT:
        return None
    common: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    factors = []
    for update in nest.updates:
        if update.operator != "+" or update.type != FLOAT32:
            return None
        pairs = []
        for summand in _operands(update.value, "+"):
            best = _best_split(summand, nest)
            if best is None or (common is not None and best[0] != common):
                return None
            common, pair = best
            pairs.append(_narrowed(pair))
        factors.append(tuple(pairs))
    if common is None:
        return None
    rows, columns = (tuple(dim for dim in nest.dims if dim.name in names) for names in common)
    batch = tuple(dim for dim in nest.dims if dim not in rows and dim not in columns)
    return Contraction(batch, rows, columns, tuple(factors))


_Split = tuple[tuple[tuple[str, ...], tuple[str, ...]], tuple[Expression, Expression]]


def _best_split(value: Expression, nest: Nest) -> _Split | None:
    """Return the rows, the columns and the two factors of the split with the largest tiles."""
    factors = _operands(value, "*")
    if not 2 <= len(factors) <= _MAX_FACTORS:
        return None
    names = [dim.name for dim in nest.dims]
    extents = nest.extents
    terms = [dim.name for dim in nest.reductions]
    last = names[-1] if names else ""
    best: tuple[int, _Split] | None = None
    for count in range(1, len(factors)):
        for chosen in itertools.combinations(range(len(factors)), count):
            left = [factors[place] for place in chosen]
            right = [factor for place, factor in enumerate(factors) if place not in chosen]
            if not all(
                any(varies(factor, term) for factor in side for term in terms)
                for side in (left, right)
            ):
                continue
            in_left = {name for name in names if any(varies(factor, name) for factor in left)}
            in_right = {name for name in names if any(varies(factor, name) for factor in right)}
            rows = tuple(name for name in names if name in in_left - in_right)
            columns = tuple(name for name in names if name in in_right - in_left)
            if last in rows:  # the stored rows are contiguous along the columns
                continue
            sizes = [math.prod(extents[name] for name in side) for side in (rows, columns)]
            if min(sizes) < MIN_EXTENT:
                continue
            split = ((rows, columns), (_product(left), _product(right)))
            if best is None or min(sizes) > best[0]:
                best = (min(sizes), split)
    return None if best is None else best[1]


def _operands(value: Expression, operator: str) -> list[Expression]:
    """Return the operands of a sum or of a product."""
    if isinstance(value, Binary) and value.operator == operator and value.type == FLOAT32:
        return [*_operands(value.left, operator), *_operands(value.right, operator)]
    return [value]


def _product(factors: Sequence[Expression]) -> Expression:
    result = factors[0]
    for factor in factors[1:]:
        result = Binary("*", result, factor, FLOAT32)
    return result


def _narrowed(pair: tuple[Expression, Expression]) -> tuple[Expression, Expression]:
    """Return two factors in their 16-bit type if both are stored in one and only selected."""
    kinds = {_storage(factor) for factor in pair}
    kind = kinds.pop()
    if kinds or kind is None:
        return pair
    left, right = (_as_stored(factor, kind) for factor in pair)
    return left, right


def _storage(node: Expression) -> ScalarType | None:
    """Return the 16-bit type of an expression of reads and zeros, or None."""
    match node:
        case Cast(operand=Element() as element) if element.type.is_float:
            return element.type if element.type.bits == 16 else None
        case Select():
            kinds = {
                _storage(part)
                for part in (node.positive, node.negative)
                if not (isinstance(part, Constant) and part.value == 0)
            }
            return kinds.pop() if len(kinds) == 1 else None
    return None


def _as_stored(node: Expression, kind: ScalarType) -> Expression:
    match node:
        case Cast(operand=Element() as element):
            return leaf(element)
        case Select():
            positive, negative = (_as_stored(part, kind) for part in (node.positive, node.negative))
            return Select(node.condition, positive, negative, kind)
        case Constant():
            return Constant(0.0, kind)
    raise TypeError(f"{type(node).__name__} is not stored in 16 bits.")
