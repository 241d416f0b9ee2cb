"""Derivatives of expressions with respect to a single access, as source code."""

from __future__ import annotations

from ...errors import TensorComprehensionError
from ..language.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Index,
    Select,
    Size,
    Unary,
)
from ..language.printing import Printer

ZERO, ONE = "", "1.0"
"""Derivatives that are omitted from products and sums."""

_UNARY = {
    "acosh": "rsqrt({0} * {0} - 1.0)",
    "acos": "(-rsqrt(1.0 - {0} * {0}))",
    "asin": "rsqrt(1.0 - {0} * {0})",
    "asinh": "rsqrt({0} * {0} + 1.0)",
    "atan": "(1.0 / (1.0 + {0} * {0}))",
    "atanh": "(1.0 / (1.0 - {0} * {0}))",
    "cbrt": "(1.0 / (3.0 * cbrt({0}) * cbrt({0})))",
    "cos": "(-sin({0}))",
    "cosh": "sinh({0})",
    "cospi": "(-3.141592653589793 * sinpi({0}))",
    "cyl_bessel_i0": "cyl_bessel_i1({0})",
    "cyl_bessel_i1": "(cyl_bessel_i0({0}) - cyl_bessel_i1({0}) / {0})",
    "erf": "(1.1283791670955126 * exp(-({0} * {0})))",
    "erfc": "(-1.1283791670955126 * exp(-({0} * {0})))",
    "erfcinv": "(-0.8862269254527580 * exp(erfcinv({0}) * erfcinv({0})))",
    "erfcx": "(2.0 * {0} * erfcx({0}) - 1.1283791670955126)",
    "erfinv": "(0.8862269254527580 * exp(erfinv({0}) * erfinv({0})))",
    "exp": "exp({0})",
    "exp10": "(2.302585092994046 * exp10({0}))",
    "exp2": "(0.6931471805599453 * exp2({0}))",
    "expm1": "exp({0})",
    "fabs": "({0} < 0 ? -1.0 : 1.0)",
    "j0": "(-j1({0}))",
    "j1": "(j0({0}) - j1({0}) / {0})",
    "log": "(1.0 / {0})",
    "log10": "(0.4342944819032518 / {0})",
    "log1p": "(1.0 / (1.0 + {0}))",
    "log2": "(1.4426950408889634 / {0})",
    "normcdf": "(0.3989422804014327 * exp(-0.5 * {0} * {0}))",
    "normcdfinv": "(2.5066282746310002 * exp(0.5 * normcdfinv({0}) * normcdfinv({0})))",
    "rcbrt": "(-rcbrt({0}) / (3.0 * {0}))",
    "rsqrt": "(-0.5 * rsqrt({0}) / {0})",
    "sin": "cos({0})",
    "sinh": "cosh({0})",
    "sinpi": "(3.141592653589793 * cospi({0}))",
    "sqrt": "(0.5 / sqrt({0}))",
    "tan": "(1.0 + tan({0}) * tan({0}))",
    "tanh": "(1.0 - tanh({0}) * tanh({0}))",
    "y0": "(-y1({0}))",
    "y1": "(y0({0}) - y1({0}) / {0})",
    **dict.fromkeys(("ceil", "floor", "logb", "round", "trunc"), ZERO),
}


def _of_reciprocal_norm(function: str, arity: int) -> tuple[str, ...]:
    norm = f"{function}({', '.join(f'{{{place}}}' for place in range(arity))})"
    return tuple(f"(-{{{place}}} * {norm} * {norm} * {norm})" for place in range(arity))


_OTHERS = {
    "atan2": ("({1} / ({0} * {0} + {1} * {1}))", "(-{0} / ({0} * {0} + {1} * {1}))"),
    "copysign": ("(copysign(1.0, {0}) * copysign(1.0, {1}))", ZERO),
    "fdim": ("({0} > {1} ? 1.0 : 0.0)", "({0} > {1} ? -1.0 : 0.0)"),
    "fdivide": ("(1.0 / {1})", "(-{0} / ({1} * {1}))"),
    "fma": ("{1}", "{0}", ONE),
    "fmax": ("({0} > {1} ? 1.0 : 0.0)", "({0} > {1} ? 0.0 : 1.0)"),
    "fmin": ("({0} < {1} ? 1.0 : 0.0)", "({0} < {1} ? 0.0 : 1.0)"),
    "fmod": (ONE, "(-trunc({0} / {1}))"),
    "hypot": ("({0} / hypot({0}, {1}))", "({1} / hypot({0}, {1}))"),
    "norm3d": tuple(f"({{{k}}} / norm3d({{0}}, {{1}}, {{2}}))" for k in range(3)),
    "norm4d": tuple(f"({{{k}}} / norm4d({{0}}, {{1}}, {{2}}, {{3}}))" for k in range(4)),
    "pow": ("({1} * pow({0}, {1} - 1.0))", "(pow({0}, {1}) * log({0}))"),
    "remainder": (ONE, "((remainder({0}, {1}) - {0}) / {1})"),
    "rhypot": _of_reciprocal_norm("rhypot", 2),
    "rnorm3d": _of_reciprocal_norm("rnorm3d", 3),
    "rnorm4d": _of_reciprocal_norm("rnorm4d", 4),
}


def derivative(node: Expression, target: Access, printer: Printer) -> str:
    """Return the derivative of `node` with respect to the access `target`; "" means zero.

    Raises:
        TensorComprehensionError: a function has no known derivative.
    """
    match node:
        case Access():
            return ONE if node == target else ZERO
        case Constant() | Index() | Size():
            return ZERO
        case Cast():
            is_float = node.operand.type.is_float and node.type.is_float
            return derivative(node.operand, target, printer) if is_float else ZERO
        case Unary():
            inner = derivative(node.operand, target, printer)
            return f"(-{inner})" if inner else ZERO
        case Select():
            positive = derivative(node.positive, target, printer)
            negative = derivative(node.negative, target, printer)
            return _either(printer.expression(node.condition), positive, negative)
        case Binary():
            return _of_binary(node, target, printer)
        case Call():
            return _of_call(node, target, printer)
    return ZERO


def times(left: str, right: str) -> str:
    """Return the product of two derivatives."""
    if not left or not right:
        return ZERO
    if left == ONE or right == ONE:
        return right if left == ONE else left
    return f"({left} * {right})"


def plus(left: str, right: str) -> str:
    """Return the sum of two derivatives."""
    return f"({left} + {right})" if left and right else left or right


def _either(condition: str, positive: str, negative: str) -> str:
    if not positive and not negative:
        return ZERO
    return f"({condition} ? {positive or '0.0'} : {negative or '0.0'})"


def _of_binary(node: Binary, target: Access, printer: Printer) -> str:
    if not node.left.type.is_float or node.type.is_bool:
        return ZERO
    left = derivative(node.left, target, printer)
    right = derivative(node.right, target, printer)
    if not left and not right:
        return ZERO
    a, b = printer.expression(node.left), printer.expression(node.right)
    match node.operator:
        case "+":
            return plus(left, right)
        case "-":
            return plus(left, f"(-{right})" if right else ZERO)
        case "*":
            return plus(times(left, b), times(a, right))
        case "/":
            first = f"({left} / {b})" if left else ZERO
            second = f"(-({a} * {right}) / ({b} * {b}))" if right else ZERO
            return plus(first, second)
        case "%":
            return plus(left, f"(-floor({a} / {b}) * {right})" if right else ZERO)
        case "min":
            return _either(f"{a} < {b}", left, right)
        case "max":
            return _either(f"{a} > {b}", left, right)
    raise TensorComprehensionError(
        f"The derivative of `{node.operator}` of floats is unknown. Pass a backward definition "
        "with `backward=`."
    )


def _of_call(node: Call, target: Access, printer: Printer) -> str:
    inner = [derivative(argument, target, printer) for argument in node.arguments]
    if not any(inner):
        return ZERO
    derivatives = (
        (_UNARY[node.function],) if node.function in _UNARY else _OTHERS.get(node.function)
    )
    if derivatives is None:
        raise TensorComprehensionError(
            f"The derivative of `{node.function}` is not known. Pass a backward definition "
            "with `backward=`."
        )
    arguments = [printer.expression(argument) for argument in node.arguments]
    total = ZERO
    for outer, own in zip(derivatives, inner, strict=True):
        total = plus(total, times(outer.format(*arguments), own))
    return total
