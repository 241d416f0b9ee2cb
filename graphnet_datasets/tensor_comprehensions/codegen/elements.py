"""The linear form of statements: every access as an offset in elements, every index from 0.

A `Nest` is what one piece of loops computes: reductions over one box (`updates`), each of which
starts from its identity, from memory or from an expression, then statements at the same points of
the output (`epilogues`), which read what was just computed out of registers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast

from ..language.affine import Affine
from ..language.expressions import (
    Binary,
    Constant,
    Expression,
    Index,
    Load,
    rebuild,
    walk,
)
from ..language.instance import Instance, InstanceStatement, Tensor
from ..language.types import INT64, ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor at an offset that is affine in the dimensions of a nest.

    Attributes:
        offset: in elements from the tensor's first.
        gathers: further terms of the offset: a stride, the subscript in memory coordinates (from
            0), and the extent to which it has to be limited, 0 for no limit.
        is_guarded: it may be out of range where the condition around it does not hold.
    """

    tensor: str
    offset: Affine
    type: ScalarType
    gathers: tuple[tuple[int, Expression, int], ...] = ()
    is_guarded: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of a nest: its values are 0 to `extent - 1`."""

    name: str
    extent: int


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """A reduction into one element: `target = operator(target, value)` over the reductions.

    `start` is "identity", "memory" (it goes on from what is there) or what it starts from.
    """

    statement: int
    target: Element
    operator: Literal["+", "*", "min", "max"]
    start: Expression | Literal["identity", "memory"]
    value: Expression
    type: ScalarType
    identity: int | float


@dataclasses.dataclass(frozen=True, slots=True)
class Assign:
    """A statement at a point: `target = value`."""

    statement: int
    target: Element
    value: Expression
    type: ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Nest:
    """Loops over `dims` and within them over `reductions`; see the module's text.

    Attributes:
        starts: the statements (by number) whose values are the starts of updates.
        renamed: for statements whose reductions have another's names: the statement, then its own
            name and the name here of each.
        begins: where the box begins along dimensions of which it is a part only.
    """

    dims: tuple[Dim, ...]
    reductions: tuple[Dim, ...]
    updates: tuple[Update, ...]
    epilogues: tuple[Assign, ...]
    starts: tuple[int, ...] = ()
    renamed: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    begins: tuple[tuple[str, int], ...] = ()

    @property
    def statements(self) -> tuple[int, ...]:
        """The numbers of its statements, in order of execution at a point."""
        return (
            *self.starts,
            *(each.statement for each in self.updates),
            *(each.statement for each in self.epilogues),
        )

    @property
    def extents(self) -> dict[str, int]:
        """The extent of each dimension by name."""
        return {each.name: each.extent for each in (*self.dims, *self.reductions)}

    @property
    def num_points(self) -> int:
        """How many points the box has."""
        return math.prod(self.extents.values())

    def expressions(self) -> Iterator[Expression]:
        """Yield the values of all statements, and the starts that are expressions."""
        for update in self.updates:
            if not isinstance(update.start, str):
                yield update.start
            yield update.value
        for each in self.epilogues:
            yield each.value

    def elements(self) -> Iterator[Element]:
        """Yield every access, those inside of subscripts and the targets included."""
        for each in self.expressions():
            yield from elements_of(each)
        for each in (*self.updates, *self.epilogues):
            yield each.target


def leaf(element: Element) -> Expression:
    """Return an element as the leaf of an expression, where a `Load` stands in an instance."""
    return cast(Any, element)


def elements_of(node: Expression) -> Iterator[Element]:
    """Yield the elements that an expression reads, those inside of subscripts included."""
    for each in walk(node):
        if isinstance(each, Element):
            yield each
            for _, subscript, _ in each.gathers:
                yield from elements_of(subscript)


def rewrite(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Rebuild an expression bottom-up, subscripts of elements included.

    `change` returns what stands in a node's place, None to keep it.
    """

    def visit(each: Expression) -> Expression:
        if isinstance(each, Element):
            gathers = tuple((step, visit(part), limit) for step, part, limit in each.gathers)
            each = dataclasses.replace(each, gathers=gathers) if gathers else each
        else:
            each = rebuild(each, visit)
        changed = change(each)
        return each if changed is None else changed

    return visit(node)


def substitute(affine: Affine, values: Mapping[str, Affine]) -> Affine:
    """Return the affine expression with each index replaced.

    >>> str(substitute(Affine.of({"i": 2}, 1), {"i": Affine.of({"d0": 1}, 3)}))
    '2*d0 + 7'
    """
    result = Affine((), affine.constant)
    for name, coefficient in affine.coefficients:
        result = result + values.get(name, Affine.index(name)) * coefficient
    return result


def linear_value(node: Expression, instance: Instance, names: Mapping[str, Affine]) -> Expression:
    """Return a statement's expression with loads as elements and indices as dimensions."""

    def visit(each: Expression) -> Expression:
        if isinstance(each, Load):
            return leaf(_element(each, instance.tensor(each.tensor), names, visit))
        if isinstance(each, Index):
            return _index(names[each.name], each)
        return rebuild(each, visit)

    return visit(node)


def _index(place: Affine, node: Index) -> Expression:
    if place.is_constant:
        return Constant(place.constant, node.type)
    ((name, coefficient),) = place.coefficients
    value: Expression = Index(name, node.type)
    if coefficient != 1:
        value = Binary("*", value, Constant(coefficient, node.type), node.type)
    if place.constant:
        value = Binary("+", value, Constant(place.constant, node.type), node.type)
    return value


def _element(
    load: Load,
    tensor: Tensor,
    names: Mapping[str, Affine],
    visit: Callable[[Expression], Expression],
) -> Element:
    offset = Affine()
    gathers: list[tuple[int, Expression, int]] = []
    checks = load.checks or ("",) * tensor.rank
    for subscript, origin, stride, size, check in zip(
        load.subscripts, tensor.origin, tensor.strides, tensor.shape, checks, strict=True
    ):
        if isinstance(subscript, Affine) and check != "clamp":
            offset = offset + (substitute(subscript, names) - origin) * stride
            continue
        value = (
            visit(expression_of(subscript)) if isinstance(subscript, Affine) else visit(subscript)
        )
        if origin:
            value = Binary("-", value, Constant(origin, value.type), value.type)
        gathers.append((stride, value, size if check == "clamp" else 0))
    return Element(tensor.name, offset, load.type, tuple(gathers), load.is_guarded)


def expression_of(affine: Affine) -> Expression:
    """Return an affine expression as a tree of 64-bit arithmetic."""
    result: Expression = Constant(affine.constant, INT64)
    for name, coefficient in affine.coefficients:
        term = Binary("*", Index(name, INT64), Constant(coefficient, INT64), INT64)
        result = Binary("+", result, term, INT64)
    return result


def target_of(statement: InstanceStatement, tensor: Tensor, names: Mapping[str, Affine]) -> Element:
    """Return the element that a statement writes."""
    offset = Affine()
    for name, origin, stride in zip(
        statement.subscripts, tensor.origin, tensor.strides, strict=True
    ):
        offset = offset + (names[name] - origin) * stride
    return Element(tensor.name, offset, tensor.dtype)
