"""A definition specialised to sizes: the input of every compiler and of the interpreter.

`instantiate` (in `inference`) turns a checked definition and the shapes of its inputs into an
`Instance`, in which nothing is symbolic. It is a list of statements to be executed in order, as if
each finished before the next began:

    for every point of `statement.box` (in any order, reductions included):
        output[subscripts] = operator(output[subscripts], value)

- `tensors` holds the inputs in order of the parameters, then the outputs in order of the returns,
  then temporaries in order of first writing. Each has a dtype, a shape and an *origin*: the
  logical coordinate of its first element along each dimension. Subscripts everywhere are logical,
  so the place in memory of coordinate `x` is `x - origin`. Inputs have origin 0. Outputs and
  temporaries are dense and row-major; `strides` (in elements) of an input may be anything that
  does not overlap itself.
- A statement's `indices` are the output's indices in the order of the left side, then the
  reduction indices in the order of their first appearance. Ranges are `[begin, end)`, and never
  empty. The left side holds each output index once, and nothing else.
- `operator` is "=", "+", "*", "min" or "max". With `initialises` every element of the box first
  gets the identity (`statement.identity`); without, the reduction goes on from what is there. A
  statement with "=" has no reduction indices.
- `value` is a typed expression (see `expressions` for what its nodes mean) of exactly the type
  `statement.type`, in which it is to be accumulated: that of the output, or float32 for one of a
  16-bit float, which is rounded when it is stored. Its leaves are `Constant`, `Index` and `Load`.
- `Load.subscripts` are `Affine` maps of the statement's indices, or integral expressions for
  gathers and for quasi-affine maps such as `i / 4` (`is_quasi_affine` tells).
- A tensor with `is_updated` is read or accumulated into before anything wrote it: its contents
  come in with the call (`outputs=`).

All nodes are frozen and hashable; `canonical_text` is the same for definitions that differ in
names only and is what caches are keyed by.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Literal

from .affine import Affine
from .expressions import Binary, Cast, Constant, Expression, Index, Load, Unary, walk
from .types import ScalarType

Role = Literal["input", "output", "temporary"]
Operator = Literal["=", "+", "*", "min", "max"]


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """An index and the half-open interval of its values."""

    name: str
    begin: int
    end: int

    @property
    def extent(self) -> int:
        """The number of values."""
        return self.end - self.begin


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of an instance: where it comes from and how it lies in memory."""

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
        """The number of dimensions."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies row-major and dense."""
        return self.strides == row_major(self.shape)


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceStatement:
    """One statement over its box; see the module's text."""

    output: str
    subscripts: tuple[str, ...]
    operator: Operator
    initialises: bool
    value: Expression
    type: ScalarType
    indices: tuple[Range, ...]
    text: str = dataclasses.field(default="", compare=False)

    @property
    def reductions(self) -> tuple[Range, ...]:
        """The indices that are not on the left side."""
        return self.indices[len(self.subscripts) :]

    @property
    def box(self) -> dict[str, tuple[int, int]]:
        """The range of each index as `(begin, end)`."""
        return {each.name: (each.begin, each.end) for each in self.indices}

    @property
    def num_points(self) -> int:
        """How often the value is evaluated."""
        return math.prod(each.extent for each in self.indices)

    @property
    def identity(self) -> int | float:
        """What the operator starts from."""
        match self.operator:
            case "*":
                return 1
            case "min":
                return self.type.greatest()
            case "max":
                return self.type.least()
            case _:
                return 0

    @property
    def loads(self) -> tuple[Load, ...]:
        """Every load in the value, those inside of subscripts included, in order."""
        return tuple(each for each in walk(self.value) if isinstance(each, Load))


@dataclasses.dataclass(frozen=True, slots=True)
class Precondition:
    """A demand on sizes or on values of tensors that range inference could not prove.

    Attributes:
        text: the demand as text, such as `0 <= I(b, k) < E`.
        statement: the number of the statement, from 0.
        is_violated: it is about sizes only and does not hold for these.
    """

    text: str
    statement: int
    is_violated: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """A definition for given sizes; see the module's text."""

    name: str
    tensors: tuple[Tensor, ...]
    statements: tuple[InstanceStatement, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    canonical_text: str = ""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs in the order in which they are passed."""
        return tuple(each for each in self.tensors if each.role == "input")

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs in the order in which they are returned."""
        return tuple(each for each in self.tensors if each.role == "output")

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """The tensors that live during a call only."""
        return tuple(each for each in self.tensors if each.role == "temporary")

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of that name."""
        return next(each for each in self.tensors if each.name == name)

    def __iter__(self) -> Iterator[InstanceStatement]:
        return iter(self.statements)


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


def is_quasi_affine(subscript: Affine | Expression) -> bool:
    """Tell whether it is made of indices, constants, `+ - *` and `/ %` by constants only."""
    if isinstance(subscript, Affine):
        return True
    return all(
        isinstance(each, Constant | Index | Unary | Cast)
        or (isinstance(each, Binary) and _is_quasi_affine_operator(each))
        for each in walk(subscript)
    )


def _is_quasi_affine_operator(node: Binary) -> bool:
    if node.operator in ("/", "%"):
        return isinstance(node.right, Constant) and node.right.value > 0
    if node.operator == "*":
        return isinstance(node.left, Constant) or isinstance(node.right, Constant)
    return node.operator in ("+", "-")
