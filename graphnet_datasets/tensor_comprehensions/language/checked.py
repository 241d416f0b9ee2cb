"""A definition whose names and types are known; sizes are still symbols."""

from __future__ import annotations

import dataclasses

from .expressions import Expression
from .instance import Operator
from .spans import Span
from .types import ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """An input: its type and per dimension the name of the size or the size itself."""

    name: str
    type: ScalarType
    dimensions: tuple[str | int, ...]
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """What statements write: an output or a temporary.

    Attributes:
        dimensions: the declared sizes, None where the definition leaves them to inference.
        is_updated: it is read or accumulated into before anything wrote it.
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
    """One statement; names that `where` gave are inlined.

    Attributes:
        value: of type `type`, in which it is accumulated.
        reductions: the indices that are not on the left side, in order of first appearance.
        exists: expressions that only feed inference.
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


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedDefinition:
    """A definition that is free of errors which do not depend on sizes.

    Attributes:
        outputs: in the order of the returns.
        temporaries: in the order of first writing.
    """

    name: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Variable, ...]
    temporaries: tuple[Variable, ...]
    statements: tuple[Statement, ...]
    source: str = dataclasses.field(default="", compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tensors: inputs, outputs, temporaries."""
        tensors = (*self.parameters, *self.outputs, *self.temporaries)
        return tuple(each.name for each in tensors)
