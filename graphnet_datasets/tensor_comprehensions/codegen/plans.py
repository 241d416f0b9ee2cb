"""How a nest is to be computed, decided before a line of C is written."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from ..language.expressions import (
    COMPARISONS,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Index,
    Select,
    Unary,
    walk,
)
from ..language.types import FLOAT32, FLOAT64, ScalarType
from .elements import Element, Nest, elements_of


@dataclasses.dataclass(frozen=True, slots=True)
class Packed:
    """An operand that is copied, a panel at a time, into a dense buffer of whole vectors."""

    element: Element
    is_first: bool
    """Whether all panels are packed before any is used, rather than each right before."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The register tile of a nest and the loops around it.

    Attributes:
        mode: "tile": lanes run along the output dimension `vector`; "lanes": along the reduction
            `vector`, and are summed at the end; "scalar": there are none.
        num_vectors: vectors of a tile along `vector`; of a reduction, its accumulators.
        rows: how many values of each other dimension a tile holds; 1 for those not named.
        order: the loops over tiles, outermost first.
        packed: the operand that is packed.
        k_block: values of the outermost reduction between two stores, 0 for all.
        blocks: dimensions whose tiles are gone through in blocks, and the size of these, a multiple
            of the tile's; the loops over blocks come outermost, in this order.
        num_parallel: how many of the outermost loops, those over blocks if there are any, are
            shared out over threads.
        prefetch: how many steps of the innermost reduction ahead a gather is asked for.
        unroll: how often the innermost reduction is unrolled.
    """

    mode: Literal["tile", "lanes", "scalar"]
    real: ScalarType
    vector: str
    num_vectors: int
    rows: tuple[tuple[str, int], ...]
    order: tuple[str, ...]
    packed: Packed | None = None
    k_block: int = 0
    blocks: tuple[tuple[str, int], ...] = ()
    num_parallel: int = 1
    prefetch: int = 0
    unroll: int = 1
    cycles: float = 0.0

    def tile(self, dim: str) -> int:
        """Return how many values of a dimension, other than the vector's, a tile holds."""
        return dict(self.rows).get(dim, 1)

    def step(self, dim: str, lanes: int) -> int:
        """Return how far the loop over tiles advances along a dimension."""
        return self.num_vectors * lanes if dim == self.vector else self.tile(dim)


def real_type(nest: Nest) -> ScalarType | None:
    """Return the float type in which a whole nest is computed, None if there is not one.

    16-bit floats are float32 in vectors, and narrowed where they are stored.
    """
    types = {each.type for each in (*nest.updates, *nest.epilogues)}
    types |= {each.target.type.compute for each in (*nest.updates, *nest.epilogues)}
    if types in ({FLOAT32}, {FLOAT64}):
        return types.pop()
    return None


def varies(node: Expression, dim: str) -> bool:
    """Tell whether a value changes along a dimension."""
    for each in walk(node):
        if isinstance(each, Index) and each.name == dim:
            return True
        if isinstance(each, Element):
            if each.offset.coefficient(dim):
                return True
            if any(varies(subscript, dim) for _, subscript, _ in each.gathers):
                return True
    return False


def can_vectorise(node: Expression, dim: str, real: ScalarType) -> bool:
    """Tell whether the lanes of an expression along `dim` can be computed as vectors of `real`."""
    if not varies(node, dim):
        return True
    match node:
        case Constant() | Index():
            return True
        case Element():
            return node.type.compute == real and not any(
                varies(subscript, dim) for _, subscript, _ in node.gathers
            )
        case Binary() if node.operator in COMPARISONS or node.operator in ("&&", "||"):
            parts = (node.left, node.right)
        case Binary() if node.type == real and node.operator != "%":
            parts = (node.left, node.right)
        case Binary() if _is_index_arithmetic(node):
            return True
        case Select() if node.type == real:
            parts = (node.condition, node.positive, node.negative)
        case Unary():
            parts = (node.operand,)
        case Cast() if node.type.compute == real or _is_index_arithmetic(node):
            inner = node.operand
            if inner.type.is_integral:
                return _is_index_arithmetic(inner)
            parts = (inner,)
            if not (inner.type.compute == real or inner.type.is_bool):
                return False
        case Call() if node.type == real:
            parts = node.arguments
        case _:
            return False
    for each in parts:
        is_known = each.type.compute == real or each.type.is_bool or _is_index_arithmetic(each)
        if varies(each, dim) and not (is_known and can_vectorise(each, dim, real)):
            return False
    return True


def _is_index_arithmetic(node: Expression) -> bool:
    """Tell whether a value is made of indices and small constants by `+ - *` only."""
    return all(
        isinstance(each, Index)
        or (isinstance(each, Constant) and each.type.is_integral and abs(each.value) < 2**24)
        or (isinstance(each, Cast) and each.type.is_integral and each.type.bits >= 32)
        or (isinstance(each, Unary) and each.type.is_integral)
        or (isinstance(each, Binary) and each.operator in ("+", "-", "*") and each.type.is_integral)
        for each in walk(node)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """What one step of a tile reads and computes."""

    operations: int
    elements: tuple[Element, ...]

    @staticmethod
    def of(nest: Nest) -> Traffic:
        """Count the float loads and the arithmetic of a nest's updates, or of its epilogues."""
        values = [each.value for each in nest.updates] or [each.value for each in nest.epilogues]
        found: dict[tuple[object, ...], Element] = {}
        operations = 0
        for value in values:
            operations += max(1, _count(value))
            for each in elements_of(value):
                found.setdefault((each.tensor, each.offset, each.gathers), each)
        return Traffic(operations, tuple(found.values()))


def _count(node: Expression) -> int:
    total = 0
    for each in walk(node):
        if isinstance(each, Call):
            total += 12
        elif isinstance(each, Binary) and each.type.is_float:
            total += 6 if each.operator == "/" else 1
        elif isinstance(each, Select):
            total += 2
    return total


def pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    """Return `(how many, how large)` the tiles of a dimension are: the whole ones, then the rest.

    >>> pieces(128, 12), pieces(24, 12), pieces(5, 12)
    ([(10, 12), (1, 8)], [(2, 12)], [(1, 5)])
    """
    whole, rest = divmod(extent, tile)
    found = [(whole, tile)] if whole else []
    return found + ([(1, rest)] if rest else [])


def divisor_tiles(extent: int, largest: int) -> list[int]:
    """Return the tiles worth trying: those that leave no rest or a large one, and the largest."""
    found = {min(extent, largest)}
    for tile in range(1, min(extent, largest) + 1):
        if extent % tile == 0 or tile in (4, 6, 8, 12, 14):
            found.add(tile)
    for count in range(1, 9):
        tile = math.ceil(extent / count)
        if tile <= largest:
            found.add(tile)
    return sorted(found)
