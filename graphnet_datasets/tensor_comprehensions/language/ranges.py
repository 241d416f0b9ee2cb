"""Range inference: the ranges of a statement's indices, derived from its accesses in rounds.

An access to dimension `d` of tensor `T` with an affine subscript `e` demands `low <= e < high`.
Ranges given by `where` are fixed first. Then each round eliminates fixed indices by requiring the
demands for all their values, and solves every open index that is the only one left in some demands:
it gets the largest interval that satisfies all of these demands, if they bound it on both sides.
All indices of a round are solved from the same demands, so the result does not depend on an order.

A demand under a condition that mentions its indices (`i > 0 ? A(i - 1) : 0`) is used only if the
other demands leave an index open, because the condition implies that it does not hold everywhere.

The elements of its own output that a scan reads demand nothing: those out of range are 0.

A range is empty only if a tensor or a size of the definition is; otherwise that is an error.
"""

from __future__ import annotations

import dataclasses

from ...errors import RangeInferenceError
from .affine import Affine
from .checked import Statement
from .expressions import Access, Expression
from .guards import guarded_accesses
from .linear import Linear, Sizes, ceiling, extreme, linear, quotient
from .spans import Span, failure


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """The range `[begin, end)` of an index or dimension, numeric and symbolic."""

    begin: Linear
    end: Linear

    @property
    def pair(self) -> tuple[int, int]:
        """Numeric begin and end."""
        return self.begin.value, self.end.value

    def __str__(self) -> str:
        return f"{self.begin.symbolic} : {self.end.symbolic}"


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """An affine expression that must be non-negative because of one subscript."""

    expression: Linear
    guarded: frozenset[str]
    access: Access
    dimension: int

    @property
    def is_conditional(self) -> bool:
        """True if a condition around the access restricts one of its indices."""
        return not self.guarded.isdisjoint(self.expression.affine.names)

    @property
    def span(self) -> Span | None:
        """Position of the subscript in the source."""
        return self.access.subscripts[self.dimension].span


Bounds = dict[str, tuple[Bound, ...]]
"""Bounds of the dimensions of the tensors known so far."""


def demands_of(statement: Statement, sizes: Sizes, bounds: Bounds) -> list[Demand]:
    """Return the demands of the accesses of a statement."""
    demands = []
    target = () if statement.target is None else (statement.target,)
    for root in (*target, statement.value, *statement.exists):
        for access, guarded in guarded_accesses(root):
            is_own_scan = statement.scan is not None and access.tensor == statement.output
            for dimension, subscript in enumerate(access.subscripts):
                if access.tensor not in bounds or is_own_scan:
                    continue
                bound = bounds[access.tensor][dimension]
                for limit in limits(subscript, bound, sizes):
                    demands.append(Demand(limit, guarded, access, dimension))
    return demands


def limits(subscript: Expression, bound: Bound, sizes: Sizes) -> tuple[Linear, ...]:
    """Return the two expressions that must be non-negative, or () for a gather.

    `low <= e / c < high` is equivalent to `c * low <= e` and `e < c * high`, as `/` rounds down.
    """
    fraction = quotient(subscript, sizes)
    if fraction is None:
        return ()
    value, factor = fraction
    above = value - bound.begin * factor
    below = bound.end * factor - value - Linear.number(1)
    return above, below


class Solver:
    """Infers the ranges of one statement.

    Attributes:
        solved: ranges of the indices known so far.
        open: indices without a range, in order.
    """

    def __init__(
        self, statement: Statement, sizes: Sizes, bounds: Bounds, fallback: dict[str, Bound]
    ) -> None:
        self.statement = statement
        self.sizes = sizes
        self.fallback = fallback
        self.demands = demands_of(statement, sizes, bounds)
        pairs = [bound.pair for dimensions in bounds.values() for bound in dimensions]
        is_empty = any(begin == end for begin, end in pairs)
        self.may_be_empty = is_empty or 0 in sizes.named.values()
        self.solved: dict[str, Bound] = {}
        self.open: list[str] = []
        for clause in statement.ranges:
            begin, end = self.range_bound(clause.begin), self.range_bound(clause.end)
            self.solve(clause.name, Bound(begin, end), clause.span)
        names = [*statement.subscripts, *statement.reductions]
        for demand in self.demands:
            names += demand.expression.affine.names
        self.open = [name for name in dict.fromkeys(names) if name not in self.solved]

    def range_bound(self, node: Expression) -> Linear:
        """Return the value of a bound in `where i in a:b`."""
        value = linear(node, self.sizes)
        if value is None or not value.affine.is_constant:
            raise failure(
                "The bounds of a range must consist of sizes, numbers and scalar inputs that are "
                "passed "
                "as constants.",
                node.span,
                RangeInferenceError,
            )
        return value

    def run(self) -> dict[str, Bound]:
        """Return the range of every index.

        Raises:
            RangeInferenceError: a range is empty or cannot be inferred.
        """
        certain = [demand for demand in self.demands if not demand.is_conditional]
        while self.open:
            if self.round(certain) or self.round(self.demands) or self.take_fallback():
                continue
            names = ", ".join(f"`{name}`" for name in self.open)
            raise failure(
                f"Could not infer the range of {names} from the accesses. Set it with "
                f"`where {self.open[0]} in 0:…`.",
                self.place_of(self.open[0]),
                RangeInferenceError,
            )
        return self.solved

    def round(self, demands: list[Demand]) -> bool:
        """Solve indices that are alone in a demand; return whether any was solved."""
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
        solutions = {
            name: Bound(extreme(lows[name], "max"), extreme(highs[name], "min"))
            for name in self.open
            if name in lows and name in highs
        }
        for name, bound in solutions.items():
            self.solve(name, bound, self.place_of(name))
        return bool(solutions)

    def take_fallback(self) -> bool:
        """Use the declared or earlier range of the output for indices of the left side."""
        names = [name for name in self.open if name in self.fallback]
        for name in names:
            self.solve(name, self.fallback[name], self.statement.span)
        return bool(names)

    def eliminated(self, expression: Linear) -> Linear:
        """Return the smallest value of an expression over all values of the solved indices."""
        coefficients, constant, symbolic = {}, expression.value, expression.symbolic
        for name, factor in expression.affine.coefficients:
            bound = self.solved.get(name)
            if bound is None:
                coefficients[name] = factor
                continue
            worst = bound.begin if factor > 0 else bound.end - Linear.number(1)
            constant += factor * worst.value
            symbolic = symbolic + worst.symbolic * factor
        return Linear(Affine.of(coefficients, constant), symbolic)

    def solve(self, name: str, bound: Bound, span: Span | None) -> None:
        """Set the range of an index; raise if it is empty."""
        begin, end = bound.pair
        if begin > end or (begin == end and not self.may_be_empty):
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
        """Return the position of an access that uses an index, or of the statement."""
        for demand in self.demands:
            if name in demand.expression.affine.names:
                return demand.span
        return self.statement.span
