"""Linear form of statements: accesses as element offsets, indices from 0.

A `Nest` is the computation of one loop nest: reductions over one box (`updates`), each starting
from its identity, from memory or from an expression, followed by statements at the same points of
the output (`epilogues`), which read the results from registers.
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
        offset: offset in elements from the first element of the tensor.
        gathers: additional terms of the offset: the stride, the subscript in memory coordinates
            (from 0), and the extent to clamp it to, or 0 without clamping.
        is_guarded: it may be out of range unless the condition around it holds.
    """

    tensor: str
    offset: Affine
    type: ScalarType
    gathers: tuple[tuple[int, Expression, int], ...] = ()
    is_guarded: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of a nest, with values from 0 to `extent - 1`."""

    name: str
    extent: int


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """A reduction into one element: `target = operator(target, value)` over the reductions.

    `start` is "identity", "memory" (continue from the current contents) or the initial value.
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
    """An assignment at a point: `target = value`."""

    statement: int
    target: Element
    value: Expression
    type: ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Nest:
    """Loops over `dims` and, inside them, over `reductions`; see the module docstring.

    Attributes:
        starts: numbers of the statements whose values start updates.
        renamed: for each statement that uses the reductions of another statement, its number and
            pairs of its own name and the new name.
        begins: begin of the nest's part along split dimensions.
        serial: dimensions whose points must be executed in order, each by one thread.
    """

    dims: tuple[Dim, ...]
    reductions: tuple[Dim, ...]
    updates: tuple[Update, ...]
    epilogues: tuple[Assign, ...]
    starts: tuple[int, ...] = ()
    renamed: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    begins: tuple[tuple[str, int], ...] = ()
    serial: tuple[str, ...] = ()

    @property
    def is_ordered(self) -> bool:
        """True for scans and scatters, which share no loops with other statements."""
        return bool(self.serial) or any(assign.target.gathers for assign in self.epilogues)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the dimensions, with the serial dimensions innermost."""
        names = [dim.name for dim in self.dims]
        return tuple(sorted(names, key=lambda name: name in self.serial))

    @property
    def statements(self) -> tuple[int, ...]:
        """Statement numbers in order of execution at a point."""
        return (
            *self.starts,
            *(update.statement for update in self.updates),
            *(assign.statement for assign in self.epilogues),
        )

    @property
    def extents(self) -> dict[str, int]:
        """Extents of the dimensions by name."""
        return {dim.name: dim.extent for dim in (*self.dims, *self.reductions)}

    @property
    def num_points(self) -> int:
        """Number of points of the box."""
        return math.prod(self.extents.values())

    def expressions(self) -> Iterator[Expression]:
        """Yield the values of all statements, and the starts that are expressions."""
        for update in self.updates:
            if not isinstance(update.start, str):
                yield update.start
            yield update.value
        for assign in self.epilogues:
            yield assign.value

    def elements(self) -> Iterator[Element]:
        """Yield every access, including those in subscripts and the targets."""
        for expression in self.expressions():
            yield from elements_of(expression)
        for statement in (*self.updates, *self.epilogues):
            yield statement.target


def leaf(element: Element) -> Expression:
    """Return an element as a leaf of an expression, in place of a `Load`."""
    return cast(Any, element)


def elements_of(node: Expression) -> Iterator[Element]:
    """Yield the elements that an expression reads, including those in subscripts."""
    for leaf_node in walk(node):
        if isinstance(leaf_node, Element):
            yield leaf_node
            for _, subscript, _ in leaf_node.gathers:
                yield from elements_of(subscript)


def rewrite(node: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Rebuild an expression bottom-up, including the subscripts of elements.

    `change` returns the replacement of a node, or None to keep it.
    """

    def visit(current: Expression) -> Expression:
        if isinstance(current, Element):
            gathers = tuple((step, visit(part), limit) for step, part, limit in current.gathers)
            current = dataclasses.replace(current, gathers=gathers) if gathers else current
        else:
            current = rebuild(current, visit)
        changed = change(current)
        return current if changed is None else changed

    return visit(node)


def substitute(affine: Affine, values: Mapping[str, Affine]) -> Affine:
    """Replace the indices of an affine expression.

    >>> str(substitute(Affine.of({"i": 2}, 1), {"i": Affine.of({"d0": 1}, 3)}))
    '2*d0 + 7'
    """
    result = Affine((), affine.constant)
    for name, coefficient in affine.coefficients:
        result = result + values.get(name, Affine.index(name)) * coefficient
    return result


def linear_value(node: Expression, instance: Instance, names: Mapping[str, Affine]) -> Expression:
    """Return an expression with loads as elements and indices as dimensions of a nest."""

    def visit(current: Expression) -> Expression:
        if isinstance(current, Load):
            return leaf(_element(current, instance.tensor(current.tensor), names, visit))
        if isinstance(current, Index):
            return _index(names[current.name], current)
        return rebuild(current, visit)

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
    """Return an affine expression as a tree of int64 operations."""
    result: Expression = Constant(affine.constant, INT64)
    for name, coefficient in affine.coefficients:
        term = Binary("*", Index(name, INT64), Constant(coefficient, INT64), INT64)
        result = Binary("+", result, term, INT64)
    return result


def target_of(
    statement: InstanceStatement, instance: Instance, names: Mapping[str, Affine]
) -> Element:
    """Return the element that a statement writes."""
    if statement.target is not None:
        return cast(Element, linear_value(statement.target, instance, names))
    tensor = instance.tensor(statement.output)
    offset = Affine()
    for name, origin, stride in zip(
        statement.subscripts, tensor.origin, tensor.strides, strict=True
    ):
        offset = offset + (names[name] - origin) * stride
    return Element(tensor.name, offset, tensor.dtype)
