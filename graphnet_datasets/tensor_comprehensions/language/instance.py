"""Definitions specialised to sizes: the input of compilers and of the interpreter.

`instantiate` (in `inference`) turns a checked definition and the shapes of its inputs into an
`Instance` without symbols. An instance is a list of statements. They are executed in order, as if
each finished before the next began:

    for every point of `statement.box` (in any order, reductions included):
        output[subscripts] = operator(output[subscripts], value)

- `tensors` contains the inputs in the order of the parameters, the outputs in the order of the
  returns, and the temporaries in the order in which they are first written. A tensor has a dtype, a
  shape and an *origin*: the logical coordinate of its first element along each dimension. All
  subscripts are logical, so coordinate `x` is at position `x - origin` in memory. Inputs have
  origin 0. Outputs and temporaries are dense and row-major; the `strides` (in elements) of an input
  are arbitrary as long as elements do not overlap.
- `indices` of a statement are the indices of the output in the order of the left side, then the
  reduction indices in the order of their first appearance. Ranges are `[begin, end)` and never
  empty: a statement without points assigns its identity, or is left out. The left side consists of
  the output indices, once each.
- A statement with a `target` is a *scatter*: it updates the element `target` at every point of its
  box. Then `subscripts` are all indices, and points whose target is out of range (see
  `Load.checks`: "clamp") update nothing.
- A statement with a `scan` reads elements of its output that precede the written element along one
  index. Its points are executed in the order of that index.
- `operator` is "=", "+", "*", "min" or "max". With `initialises`, every element of the box is first
  set to the identity (`statement.identity`); otherwise the reduction continues from the current
  contents. A statement with "=" has no reduction indices.
- `value` is a typed expression (see `expressions`) of type `statement.type`, in which it must be
  accumulated: the type of the output, or float32 for a 16-bit float output, which is rounded when
  it is stored. The leaves of `value` are `Constant`, `Index` and `Load`.
- `Load.subscripts` are `Affine` maps of the statement's indices, or integral expressions for
  gathers and for quasi-affine maps such as `i / 4`.
- A tensor with `is_updated` is read or accumulated into before any statement writes it: the caller
  passes its contents (`outputs=`).

All nodes are frozen and hashable. `canonical_text` is equal for definitions that differ only in
names; caches use it as key.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Literal

from .expressions import Expression, Load, walk
from .types import ScalarType

Role = Literal["input", "output", "temporary"]
Operator = Literal["=", "+", "*", "min", "max"]


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """An index and its half-open interval of values."""

    name: str
    begin: int
    end: int

    @property
    def extent(self) -> int:
        """Number of values."""
        return self.end - self.begin


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of an instance: its role and its memory layout."""

    name: str
    dtype: ScalarType
    shape: tuple[int, ...]
    role: Role
    origin: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    is_updated: bool = False

    def __post_init__(self) -> None:
        if not self.origin:
            object.__setattr__(self, "origin", (0,) * len(self.shape))
        if not self.strides:
            object.__setattr__(self, "strides", row_major(self.shape))

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """True for a dense, row-major tensor."""
        return self.strides == row_major(self.shape)


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """An order of execution: ascending values of an index, or descending ones."""

    index: str
    is_descending: bool


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceStatement:
    """One statement over its box; see the module docstring."""

    output: str
    subscripts: tuple[str, ...]
    operator: Operator
    initialises: bool
    value: Expression
    type: ScalarType
    indices: tuple[Range, ...]
    text: str = dataclasses.field(default="", compare=False)
    target: Load | None = None
    scan: Scan | None = None

    @property
    def reductions(self) -> tuple[Range, ...]:
        """Indices that are not on the left side."""
        return self.indices[len(self.subscripts) :]

    @property
    def box(self) -> dict[str, tuple[int, int]]:
        """Range of each index as `(begin, end)`."""
        return {index.name: (index.begin, index.end) for index in self.indices}

    @property
    def num_points(self) -> int:
        """Number of evaluations of the value."""
        return math.prod(index.extent for index in self.indices)

    @property
    def identity(self) -> int | float:
        """Neutral element of the operator."""
        return identity_of(self.operator, self.type)

    @property
    def loads(self) -> tuple[Load, ...]:
        """All loads in order, including those in subscripts and the target of a scatter."""
        roots = (self.value,) if self.target is None else (self.target, self.value)
        return tuple(node for root in roots for node in walk(root) if isinstance(node, Load))


@dataclasses.dataclass(frozen=True, slots=True)
class Precondition:
    """A condition on sizes or tensor values that range inference could not prove.

    Attributes:
        text: the condition as a string, such as `0 <= I(b, k) < E`.
        statement: number of the statement, from 0.
        is_violated: the condition depends only on sizes and does not hold for them.
    """

    text: str
    statement: int
    is_violated: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """A definition for fixed sizes; see the module docstring."""

    name: str
    tensors: tuple[Tensor, ...]
    statements: tuple[InstanceStatement, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    canonical_text: str = ""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs in the order in which they are passed."""
        return tuple(tensor for tensor in self.tensors if tensor.role == "input")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Outputs in the order in which they are returned."""
        return tuple(tensor for tensor in self.tensors if tensor.role == "output")

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """Tensors that exist only during a call."""
        return tuple(tensor for tensor in self.tensors if tensor.role == "temporary")

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by name."""
        return next(tensor for tensor in self.tensors if tensor.name == name)

    def __iter__(self) -> Iterator[InstanceStatement]:
        return iter(self.statements)


def identity_of(operator: Operator, type_: ScalarType) -> int | float:
    """Return the neutral element of an operator.

    >>> from .types import INT8
    >>> identity_of("*", INT8), identity_of("max", INT8)
    (1, -128)
    """
    match operator:
        case "*":
            return 1
        case "min":
            return type_.greatest()
        case "max":
            return type_.least()
        case _:
            return 0


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense row-major tensor.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
