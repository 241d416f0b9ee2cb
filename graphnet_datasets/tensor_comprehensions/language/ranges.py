"""Range inference: what the accesses of one statement say about its indices, in rounds.

Each access of dimension `d` of tensor `T` with an affine subscript `e` demands
`low <= e < high`. Ranges that `where` gives are fixed first. Then, in rounds: a fixed index is
eliminated by demanding the rest for all of its values; every open index that stands alone in some
of the remaining demands gets the largest interval that satisfies all of those, if they bound it on
both sides. All indices of a round are solved from the same demands, so that no order matters.

A demand under a condition that mentions its indices (`i > 0 ? A(i - 1) : 0`) takes part only where
the others leave an index open: the condition is there because the demand does not hold everywhere.
"""

from __future__ import annotations

import dataclasses

from ...errors import RangeInferenceError
from .affine import Affine
from .checked import Statement
from .expressions import Access, Expression
from .guards import Guards, guarded_accesses
from .linear import Linear, Sizes, ceiling, extreme, linear, quotient
from .spans import Span, failure


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """The range `[begin, end)` of an index or a dimension, as numbers and as text."""

    begin: Linear
    end: Linear

    @property
    def pair(self) -> tuple[int, int]:
        """The numbers."""
        return self.begin.value, self.end.value

    def __str__(self) -> str:
        return f"{self.begin.symbolic} : {self.end.symbolic}"


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """An affine expression that may not be negative, because of one subscript."""

    expression: Linear
    guards: Guards
    access: Access
    dimension: int

    @property
    def is_conditional(self) -> bool:
        """Whether a condition around the access restricts an index of it."""
        names = set(self.expression.affine.names)
        return any(names & set(guard.names) for guard in self.guards)

    @property
    def span(self) -> Span | None:
        """The subscript's place in the text."""
        return self.access.subscripts[self.dimension].span


Bounds = dict[str, tuple[Bound, ...]]
"""The bounds of each dimension of each tensor that is known so far."""


def demands_of(statement: Statement, sizes: Sizes, bounds: Bounds) -> list[Demand]:
    """Return what the accesses of a statement demand of its indices."""
    found = []
    for root in (statement.value, *statement.exists):
        for access, guards in guarded_accesses(root, sizes):
            for dimension, subscript in enumerate(access.subscripts):
                if access.tensor not in bounds:
                    continue
                bound = bounds[access.tensor][dimension]
                for each in limits(subscript, bound, sizes):
                    found.append(Demand(each, guards, access, dimension))
    return found


def limits(subscript: Expression, bound: Bound, sizes: Sizes) -> tuple[Linear, ...]:
    """Return the two expressions that may not be negative, () for a gather.

    `low <= e / c < high` is `c * low <= e` and `e < c * high`, as `/` rounds down.
    """
    found = quotient(subscript, sizes)
    if found is None:
        return ()
    value, factor = found
    above = value - bound.begin * factor
    below = bound.end * factor - value - Linear.number(1)
    return above, below


class Solver:
    """Infers the ranges of one statement.

    Attributes:
        solved: the range of each index that is known so far.
        open: the indices that are not, in order, with a place in the text.
    """

    def __init__(
        self, statement: Statement, sizes: Sizes, bounds: Bounds, fallback: dict[str, Bound]
    ) -> None:
        self.statement = statement
        self.sizes = sizes
        self.fallback = fallback
        self.demands = demands_of(statement, sizes, bounds)
        self.solved: dict[str, Bound] = {}
        self.open: list[str] = []
        for each in statement.ranges:
            begin, end = self.range_bound(each.begin), self.range_bound(each.end)
            self.solve(each.name, Bound(begin, end), each.span)
        names = [*statement.subscripts, *statement.reductions]
        for demand in self.demands:
            names += demand.expression.affine.names
        self.open = [name for name in dict.fromkeys(names) if name not in self.solved]

    def range_bound(self, node: Expression) -> Linear:
        """Return the value of one side of `where i in a:b`."""
        value = linear(node, self.sizes)
        if value is None or not value.affine.is_constant:
            raise failure(
                "The bounds of a range have to be made of sizes, numbers and scalar inputs whose "
                "values are given as constants.",
                node.span,
                RangeInferenceError,
            )
        return value

    def run(self) -> dict[str, Bound]:
        """Return the range of every index.

        Raises:
            RangeInferenceError: a range is empty, or indices stay open.
        """
        certain = [each for each in self.demands if not each.is_conditional]
        while self.open:
            if self.round(certain) or self.round(self.demands) or self.take_fallback():
                continue
            names = ", ".join(f"`{name}`" for name in self.open)
            raise failure(
                f"Could not infer the range of {names} from the accesses. Give it as "
                f"`where {self.open[0]} in 0:…`.",
                self.place_of(self.open[0]),
                RangeInferenceError,
            )
        return self.solved

    def round(self, demands: list[Demand]) -> bool:
        """Solve what stands alone; tell whether there was progress."""
        lows: dict[str, list[Linear]] = {}
        highs: dict[str, list[Linear]] = {}
        for demand in demands:
            rest = self.eliminated(demand.expression)
            if len(rest.affine.names) != 1:
                continue
            ((name, factor),) = rest.affine.coefficients
            constant = Linear(Affine((), rest.value), rest.symbolic)
            if factor > 0:
                lows.setdefault(name, []).append(ceiling(constant * -1, factor))
            else:
                high = ceiling(constant + Linear.number(1), -factor)
                highs.setdefault(name, []).append(high)
        found = {
            name: Bound(extreme(lows[name], "max"), extreme(highs[name], "min"))
            for name in self.open
            if name in lows and name in highs
        }
        for name, bound in found.items():
            self.solve(name, bound, self.place_of(name))
        return bool(found)

    def take_fallback(self) -> bool:
        """Give indices of the left side the declared or earlier range of the output."""
        found = [name for name in self.open if name in self.fallback]
        for name in found:
            self.solve(name, self.fallback[name], self.statement.span)
        return bool(found)

    def eliminated(self, expression: Linear) -> Linear:
        """Return the least value of an expression over all values of the solved indices."""
        kept, constant, symbolic = {}, expression.value, expression.symbolic
        for name, factor in expression.affine.coefficients:
            bound = self.solved.get(name)
            if bound is None:
                kept[name] = factor
                continue
            worst = bound.begin if factor > 0 else bound.end - Linear.number(1)
            constant += factor * worst.value
            symbolic = symbolic + worst.symbolic * factor
        return Linear(Affine.of(kept, constant), symbolic)

    def solve(self, name: str, bound: Bound, span: Span | None) -> None:
        """Enter a range."""
        begin, end = bound.pair
        if begin >= end:
            text = (
                f"{begin}:{end}" if str(bound) == f"{begin} : {end}" else f"{begin}:{end} ({bound})"
            )
            raise failure(
                f"The range of `{name}` is empty: {text}. Check the sizes of the inputs.",
                span,
                RangeInferenceError,
            )
        self.solved[name] = bound
        if name in self.open:
            self.open.remove(name)

    def place_of(self, name: str) -> Span | None:
        """Return the place of an access that an index occurs in, else that of the statement."""
        for demand in self.demands:
            if name in demand.expression.affine.names:
                return demand.span
        return self.statement.span
