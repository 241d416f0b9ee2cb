"""Plans of nests, made before C is generated."""

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
from ..language.types import FLOAT32, FLOAT64, INT32, INT64, ScalarType
from .elements import Element, Nest, elements_of


@dataclasses.dataclass(frozen=True, slots=True)
class Packed:
    """An operand that is copied panel by panel into a dense buffer of whole vectors."""

    element: Element
    is_first: bool
    """True if all panels are packed before the first is used; otherwise each just before its
    use.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The register tile of a nest and the loops around it.

    Attributes:
        mode: "tile": lanes run along the output dimension `vector`; "lanes": lanes run along the
            reduction `vector` and are combined at the end; "scalar": no vectors.
        num_vectors: vectors of a tile along `vector`; for "lanes", the number of accumulators.
        rows: size of the tile along other dimensions; 1 for dimensions not listed.
        order: loops over tiles, outermost first.
        packed: the packed operand.
        k_block: values of the outermost reduction between two stores; 0 for all.
        blocks: dimensions whose tiles are processed in blocks, with the block size, a multiple of
            the tile size. The loops over blocks are outermost, in this order.
        num_parallel: number of outermost loops (over blocks, if there are any) distributed over
            threads.
        prefetch: prefetch distance of gathers in steps of the innermost reduction.
        unroll: unroll factor of the innermost reduction.
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
        """Return the size of a tile along a dimension other than the vector dimension."""
        return dict(self.rows).get(dim, 1)

    def step(self, dim: str, lanes: int) -> int:
        """Return the step of the loop over tiles along a dimension."""
        return self.num_vectors * lanes if dim == self.vector else self.tile(dim)


def real_type(nest: Nest) -> ScalarType | None:
    """Return the float type in which the whole nest is computed, or None.

    16-bit floats are computed as float32 and narrowed when they are stored.
    """
    types = {statement.type for statement in (*nest.updates, *nest.epilogues)}
    types |= {statement.target.type.compute for statement in (*nest.updates, *nest.epilogues)}
    if types in ({FLOAT32}, {FLOAT64}):
        return types.pop()
    return None


def varies(node: Expression, dim: str) -> bool:
    """Return whether a value changes along a dimension."""
    for current in walk(node):
        if isinstance(current, Index) and current.name == dim:
            return True
        if isinstance(current, Element):
            if current.offset.coefficient(dim):
                return True
            if any(varies(subscript, dim) for _, subscript, _ in current.gathers):
                return True
    return False


def can_vectorise(node: Expression, dim: str, real: ScalarType) -> bool:
    """Return whether an expression can be computed along `dim` with vectors of `real`."""
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
        case Binary() if _is_index_arithmetic(node, real):
            return True
        case Select() if node.type == real:
            parts = (node.condition, node.positive, node.negative)
        case Unary():
            parts = (node.operand,)
        case Cast() if node.type.compute == real or _is_index_arithmetic(node, real):
            inner = node.operand
            if inner.type.is_integral:
                return _is_index_arithmetic(inner, real)
            parts = (inner,)
            if not (inner.type.compute == real or inner.type.is_bool):
                return False
        case Call() if node.type == real:
            parts = node.arguments
        case _:
            return False
    for part in parts:
        is_vector_type = (
            part.type.compute == real or part.type.is_bool or _is_index_arithmetic(part, real)
        )
        if varies(part, dim) and not (is_vector_type and can_vectorise(part, dim, real)):
            return False
    return True


def _is_index_arithmetic(node: Expression, real: ScalarType) -> bool:
    """Return whether a value consists of indices and small constants, combined by `+ - *`.

    Lanes are int32 beside float32, and int64 beside float64; other types overflow differently.
    """
    types = {INT32, INT64} if real == FLOAT64 else {INT32}
    return all(
        isinstance(current, Index)
        or (
            isinstance(current, Constant)
            and current.type.is_integral
            and abs(current.value) < 2**24
        )
        or (isinstance(current, Unary) and current.type in types)
        or (isinstance(current, Cast) and current.type in types - {INT32})
        or (
            isinstance(current, Binary)
            and current.operator in ("+", "-", "*")
            and current.type in types
        )
        for current in walk(node)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """Loads and operations of one step of a tile."""

    operations: int
    elements: tuple[Element, ...]

    @staticmethod
    def of(nest: Nest) -> Traffic:
        """Count the loads and arithmetic of the updates of a nest, or else of its epilogues."""
        values = [statement.value for statement in nest.updates] or [
            statement.value for statement in nest.epilogues
        ]
        elements: dict[tuple[object, ...], Element] = {}
        operations = 0
        for value in values:
            operations += max(1, _count(value))
            for element in elements_of(value):
                elements.setdefault((element.tensor, element.offset, element.gathers), element)
        return Traffic(operations, tuple(elements.values()))


def _count(node: Expression) -> int:
    total = 0
    for current in walk(node):
        if isinstance(current, Call):
            total += 12
        elif isinstance(current, Binary) and current.type.is_float:
            total += 6 if current.operator == "/" else 1
        elif isinstance(current, Select):
            total += 2
    return total


def pieces(extent: int, tile: int) -> list[tuple[int, int]]:
    """Return `(count, size)` of the tiles of a dimension: whole tiles, then the partial tile.

    >>> pieces(128, 12), pieces(24, 12), pieces(5, 12)
    ([(10, 12), (1, 8)], [(2, 12)], [(1, 5)])
    """
    whole, rest = divmod(extent, tile)
    tiles = [(whole, tile)] if whole else []
    return tiles + ([(1, rest)] if rest else [])


def divisor_tiles(extent: int, largest: int) -> list[int]:
    """Return useful tile sizes: without a remainder or with a large one, and the largest."""
    sizes = {min(extent, largest)}
    for tile in range(1, min(extent, largest) + 1):
        if extent % tile == 0 or tile in (4, 6, 8, 12, 14):
            sizes.add(tile)
    for count in range(1, 9):
        tile = math.ceil(extent / count)
        if tile <= largest:
            sizes.add(tile)
    return sorted(sizes)
