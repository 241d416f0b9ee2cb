"""Definitions with resolved names and types; sizes are still symbolic."""

from __future__ import annotations

import dataclasses

from .expressions import Access, Expression
from .instance import Operator, Scan
from .spans import Span
from .types import ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """An input; each dimension is the name of a size or a fixed size."""

    name: str
    type: ScalarType
    dimensions: tuple[str | int, ...]
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """An output or temporary, written by statements.

    Attributes:
        dimensions: declared sizes; None if they are inferred.
        is_updated: it is read or accumulated into before any statement writes it.
    """

    name: str
    type: ScalarType
    rank: int
    dimensions: tuple[str | int, ...] | None = None
    is_updated: bool = False
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class IndexRange:
    """`where name in begin : end`."""

    name: str
    begin: Expression
    end: Expression
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Statement:
    """A statement in which names defined by `where` are inlined.

    Attributes:
        value: has type `type`, in which it is accumulated.
        reductions: indices missing from the left side, in order of first appearance.
        exists: expressions used only for range inference.
        target: the element that a scatter updates; its `subscripts` are all indices.
        scan: order of a statement that reads earlier elements of its output.
    """

    output: str
    subscripts: tuple[str, ...]
    operator: Operator
    initialises: bool
    value: Expression
    type: ScalarType
    reductions: tuple[str, ...]
    ranges: tuple[IndexRange, ...] = ()
    exists: tuple[Expression, ...] = ()
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)
    target: Access | None = None
    scan: Scan | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedDefinition:
    """A definition without errors that can be detected before its sizes are known.

    Attributes:
        outputs: in the order of the returns.
        temporaries: in the order in which they are first written.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Variable, ...]
    temporaries: tuple[Variable, ...]
    statements: tuple[Statement, ...]
    source: str = dataclasses.field(default="", compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tensors: inputs, outputs, temporaries."""
        tensors = (*self.parameters, *self.outputs, *self.temporaries)
        return tuple(tensor.name for tensor in tensors)
