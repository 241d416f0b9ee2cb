"""Symbolic dimensions in a small arithmetic grammar, parsed and evaluated without `eval`.

A dimension is a non-negative integer or an expression over the symbols of its sample, for example
`s0`, `2*s0 + 1` or `(s1 - 1)//16 + 1`. The grammar is integers, symbol names, `+ - * // % **`,
unary minus, parentheses and the functions `Max`, `Min`, `FloorDiv`, `CeilDiv`, `Mod` and
`PythonMod` that sympy and torch print.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..errors import SymbolError

Dim: TypeAlias = int | str
"""A dimension: an integer, or a string with an expression over symbols."""

MAX_EXPRESSION_LENGTH = 1_000
"""Limit in characters; the longest expression in 2,495 upstream samples has fewer than 100."""

MAX_MAGNITUDE = 2**63 - 1
"""Dimensions and their intermediate results fit in a signed 64-bit integer."""

MAX_DEPTH = 64
"""Nesting limit; sums and products of many terms add one level per term."""

_ALPHABET = re.compile(r"[A-Za-z0-9_.+\-*/%(), ]*\Z")
"""Without `#`, quotes and newlines, because expressions are printed into source code."""
_SYMBOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


def _floor_divide(left: int, right: int) -> int:
    return left // right


def _modulo(left: int, right: int) -> int:
    return left % right


def _power(base: int, exponent: int) -> int:
    if not 0 <= exponent <= 62:
        raise OverflowError
    return base**exponent


_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _modulo,
    ast.Pow: _power,
}

_FUNCTIONS: dict[str, Callable[..., int]] = {
    "Max": max,
    "Min": min,
    "FloorDiv": _floor_divide,
    "CeilDiv": lambda left, right: -(-left // right),
    "Mod": _modulo,
    "PythonMod": _modulo,
}


def is_symbol_name(text: str) -> bool:
    """Return whether `text` is a valid symbol name: an identifier of up to 64 ASCII characters."""
    return bool(_SYMBOL_NAME.match(text)) and text not in _FUNCTIONS


@functools.lru_cache(maxsize=4096)
def free_symbols(expression: str) -> frozenset[str]:
    """Return the symbols in `expression`, after checking it against the grammar.

    Raises:
        SymbolError: the expression is not in the grammar.

    >>> sorted(free_symbols("2*s0 + Max(s1, 1)"))
    ['s0', 's1']
    """
    names: set[str] = set()
    _walk(_parse(expression), expression, names)
    return frozenset(names)


def evaluate(dimension: Dim, values: Mapping[str, int]) -> int:
    """Evaluate a dimension to an integer with the symbols' values in `values`.

    Raises:
        SymbolError: the expression is not in the grammar, a symbol has no value, or evaluation
            divides by zero or exceeds 64 bits.

    >>> evaluate("(s0 - 1)//16 + 1", {"s0": 224})
    14
    """
    if isinstance(dimension, int):
        return dimension
    return _evaluate(_parse(dimension).body, dimension, values)


@functools.lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.Expression:
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise SymbolError(
            f"A symbolic dimension has {len(expression)} characters; at most "
            f"{MAX_EXPRESSION_LENGTH} are accepted. Simplify it."
        )
    if not _ALPHABET.match(expression):
        raise SymbolError(
            f"{expression[:80]!r} is not a symbolic dimension. Use only letters, digits and "
            "`_.+-*/%(),` on one line."
        )
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SymbolError(
            f"`{expression[:80]}` is not a symbolic dimension, because it is not an expression. "
            "Correct its syntax."
        ) from error
    level: list[ast.AST] = [tree.body]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise SymbolError(
        f"`{expression[:80]}` … is nested more than {MAX_DEPTH} levels deep. Simplify the "
        "dimension."
    )


def _walk(tree: ast.Expression, expression: str, names: set[str]) -> None:
    pending: list[ast.expr] = [tree.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Constant) and type(node.value) is int:
            _bounded(node.value, expression)
        elif isinstance(node, ast.Name) and is_symbol_name(node.id):
            names.add(node.id)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            pending.append(node.operand)
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            pending += [node.left, node.right]
        elif (call := _function_call(node)) is not None:
            pending += call[1]
        else:
            raise _outside_grammar(expression, node)


def _evaluate(node: ast.expr, expression: str, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value, expression)
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise SymbolError(
                f"`{expression}` uses the symbol `{node.id}`, which has no value. Pass its value."
            )
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, expression, values)
    try:
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            left = _evaluate(node.left, expression, values)
            right = _evaluate(node.right, expression, values)
            return _bounded(_BINARY[type(node.op)](left, right), expression)
        if (call := _function_call(node)) is not None:
            arguments = [_evaluate(argument, expression, values) for argument in call[1]]
            return _bounded(_FUNCTIONS[call[0]](*arguments), expression)
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise SymbolError(
            f"`{expression}` has no integer value at {dict(values)}: {type(error).__name__}. "
            "Correct the expression or the values."
        ) from error
    raise _outside_grammar(expression, node)


def _function_call(node: ast.expr) -> tuple[str, list[ast.expr]] | None:
    """Return the name and arguments if `node` calls a function of the grammar, otherwise None."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id not in _FUNCTIONS or node.keywords or not node.args:
        return None
    return node.func.id, node.args


def _bounded(value: int, expression: str) -> int:
    if abs(value) > MAX_MAGNITUDE:
        raise SymbolError(f"`{expression[:80]}` exceeds 64 bits. Use smaller numbers.")
    return value


def _outside_grammar(expression: str, node: ast.expr) -> SymbolError:
    return SymbolError(
        f"`{expression[:80]}` is not a symbolic dimension: `{type(node).__name__}` is outside the "
        "grammar. Use integers, symbols, + - * // % **, Max, Min, FloorDiv, CeilDiv and Mod."
    )
