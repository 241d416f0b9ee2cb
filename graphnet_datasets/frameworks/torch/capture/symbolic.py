"""Conversion of a trace's symbolic sizes from sympy to the grammar of `symbols`.

Tracers derive symbol names (`s77`) from hashes of their sources, which differ between versions.
Symbols are renamed to `s0`, `s1`, … in the order of their first use in the graph's inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import sympy
import torch
from sympy.printing.str import StrPrinter

from ....errors import SymbolError
from ....sample import Constraint, Symbol
from ....sample.symbols import Dim, free_symbols
from ....sample.vocabulary import Relation

_RELATIONS: dict[type, Relation] = {
    sympy.Eq: "==", sympy.Ne: "!=", sympy.Lt: "<", sympy.Le: "<=", sympy.Gt: ">", sympy.Ge: ">=",
}  # fmt: skip

_OPEN_BOUND = 2**62
"""Tracers represent missing bounds by numbers at least this large."""


class UnknownSizeError(Exception):
    """A size depends on tensor elements, so it cannot be part of a shape."""


class SymbolTable:
    """The symbols of one graph in order of first use, with their canonical names."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._shape_env: Any = None

    def dim(self, size: int | torch.SymInt) -> Dim:
        """Return `size` as an integer or an expression of canonical symbols.

        Raises:
            UnknownSizeError: If the size depends on data or is outside the grammar.
        """
        if not isinstance(size, torch.SymInt):
            return int(size)
        expression = self.expression(size)
        return int(expression) if expression.is_Integer else self._print(expression)

    def expression(self, size: int | torch.SymInt) -> sympy.Expr:
        """Return `size` as a sympy expression of the tracer's symbols."""
        if not isinstance(size, torch.SymInt):
            return sympy.Integer(int(size))
        self._shape_env = size.node.shape_env
        return sympy.sympify(size.node.expr)

    def symbols(self) -> tuple[Symbol, ...]:
        """Return the symbols used so far with their hints and ranges."""
        return tuple(
            Symbol(name, self._hint(symbol), *self._range(symbol))
            for symbol, name in self._names.items()
        )

    def constraints(self) -> tuple[Constraint, ...]:
        """Return the guards of the trace that only involve symbols used so far.

        Disjunctions (`a or b`) cannot be expressed in the format and are omitted. The captured
        sizes satisfy them, and ranges and other relations are kept.
        """
        if self._shape_env is None:
            return ()
        constraints: dict[Constraint, None] = {}
        for guard in self._shape_env.guards:
            for relation in self._conjuncts(guard.expr):
                constraint = self._constraint(relation)
                if constraint is not None:
                    constraints[constraint] = None
        return tuple(constraints)

    def _conjuncts(self, guard: sympy.Basic) -> Iterable[sympy.Basic]:
        return guard.args if isinstance(guard, sympy.And) else (guard,)

    def _constraint(self, relation: sympy.Basic) -> Constraint | None:
        written = _RELATIONS.get(type(relation))
        if written is None:
            return None
        left, right = (side.xreplace(self._replacements()) for side in relation.args)
        met = left.free_symbols | right.free_symbols
        if left == right or not met or not met <= self._names.keys():
            return None
        try:
            return Constraint(self._print(left), written, self._print(right))
        except UnknownSizeError:
            return None

    def _replacements(self) -> dict[Any, Any]:
        return dict(self._shape_env.replacements)

    def _print(self, expression: sympy.Basic) -> str:
        for symbol in sorted(expression.free_symbols, key=str):
            if symbol not in self._names:
                if symbol not in self._hints():
                    raise UnknownSizeError(str(symbol))
                self._names[symbol] = f"s{len(self._names)}"
        renamed = expression.xreplace(
            {symbol: sympy.Symbol(name, integer=True) for symbol, name in self._names.items()}
        )
        text = _Printer().doprint(renamed)
        try:
            free_symbols(text)
        except SymbolError as error:
            raise UnknownSizeError(text) from error
        return text

    def _hints(self) -> dict[Any, Any]:
        # Renamed in torch 2.12; the old name `var_to_val` emits a warning there.
        env = self._shape_env
        return env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val

    def _hint(self, symbol: sympy.Symbol) -> int:
        return int(self._hints()[symbol])

    def _range(self, symbol: sympy.Symbol) -> tuple[int | None, int | None]:
        bounds = self._shape_env.var_to_range.get(symbol)
        if bounds is None:
            return None, None
        return _bound(bounds.lower), _bound(bounds.upper)


def _bound(value: Any) -> int | None:
    """Return a range bound as an integer, or None if the range is open."""
    if not getattr(value, "is_Integer", False) and not isinstance(value, int):
        as_float = float(value) if getattr(value, "is_Float", False) else math.inf
        return None if math.isinf(as_float) else int(as_float)
    return None if abs(int(value)) >= _OPEN_BOUND else int(value)


class _Printer(StrPrinter):
    """Prints sympy expressions and torch's integer functions in the grammar of `symbols`."""

    def _print_Mul(self, expr: sympy.Mul) -> str:  # noqa: N802 - sympy dispatches on this name
        numerator, denominator = expr.as_numer_denom()
        if denominator == 1:
            return super()._print_Mul(expr)
        # Quotients of sizes are only printed if they are exact.
        return f"({self._print(numerator)})//({self._print(denominator)})"

    def _print_Add(self, expr: sympy.Add, order: Any = None) -> str:  # noqa: N802
        together: Any = sympy.together(expr)
        numerator, denominator = together.as_numer_denom()
        if denominator == 1:
            return super()._print_Add(expr, order)
        return f"({self._print(numerator)})//({self._print(denominator)})"

    def _print_ModularIndexing(self, expr: sympy.Basic) -> str:  # noqa: N802
        base, divisor, modulus = (self._print(part) for part in expr.args)
        return f"Mod(FloorDiv({base}, {divisor}), {modulus})"

    def _print_FloorDiv(self, expr: sympy.Basic) -> str:  # noqa: N802
        base, divisor = (self._print(part) for part in expr.args)
        return f"FloorDiv({base}, {divisor})"

    _print_CleanDiv = _print_FloorDiv  # noqa: N815
