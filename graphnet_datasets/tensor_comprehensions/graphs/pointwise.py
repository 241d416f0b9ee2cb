"""Rules for pointwise operators."""

from __future__ import annotations

from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value, converted
from .block import number_text as literal
from .registry import DTYPES, Lowering, argument, dtype_of, meta_of, rule, shape_of

_SIGMOID = "1.0 / (1.0 + exp(-{0}))"
_FORMULAS = {
    "add.Tensor": "{0} + {1}",
    "add.Scalar": "{0} + {1}",
    "sub.Tensor": "{0} - {1}",
    "sub.Scalar": "{0} - {1}",
    "rsub.Scalar": "{1} - {0}",
    "mul.Tensor": "{0} * {1}",
    "mul.Scalar": "{0} * {1}",
    "maximum.default": "{0} != {0} ? {0} : max({0}, {1})",
    "minimum.default": "{0} != {0} ? {0} : min({0}, {1})",
    "neg.default": "-{0}",
    "abs.default": "{0} < 0 ? -{0} : {0}",
    "square.default": "{0} * {0}",
    # `max` returns its second operand if one operand is NaN, like eager's relu.
    "relu.default": "max(0, {0})",
    "bitwise_and.Tensor": "{0} && {1}",
    "bitwise_or.Tensor": "{0} || {1}",
    "logical_and.default": "{0} && {1}",
    "logical_or.default": "{0} || {1}",
    "logical_xor.default": "{0} != {1}",
    "bitwise_xor.Tensor": "{0} != {1}",
    "logical_not.default": "!{0}",
    "bitwise_not.default": "!{0}",
}
_FLOAT_FORMULAS = {
    "div.Tensor": "{0} / {1}",
    "div.Scalar": "{0} / {1}",
    "true_divide.Tensor": "{0} / {1}",
    "reciprocal.default": "1.0 / {0}",
    "sigmoid.default": _SIGMOID,
    "silu.default": "{0} / (1.0 + exp(-{0}))",
    "hardsigmoid.default": "min(6.0, max(0.0, {0} + 3.0)) / 6.0",
    "hardswish.default": "{0} * (min(6.0, max(0.0, {0} + 3.0)) / 6.0)",
    "mish.default": "{0} * tanh({0} > 20.0 ? {0} : log1p(exp({0})))",
    "log_sigmoid.default": "min({0}, 0.0) - log1p(exp(-fabs({0})))",
    "logit.default": "log({0} / (1.0 - {0}))",
    "sign.default": "{0} > 0 ? 1.0 : ({0} < 0 ? -1.0 : {0})",
    "atan2.default": "atan2({0}, {1})",
    "pow.Tensor_Tensor": "pow({0}, {1})",
    "pow.Scalar": "pow({0}, {1})",
}
_FUNCTIONS = {
    **{name: name for name in ("sqrt", "rsqrt", "exp", "exp2", "log", "log1p", "log2", "log10")},
    **{name: name for name in ("expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf")},
    **{name: name for name in ("erfc", "floor", "ceil", "trunc", "asin", "acos", "atan")},
    **{name: name for name in ("asinh", "acosh", "atanh", "lgamma")},
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BOOLEAN = frozenset({"<", "<=", ">", ">=", "==", "!=", "&&", "||"})
_LOGICAL = (
    "logical_and.default",
    "logical_or.default",
    "logical_not.default",
    "logical_xor.default",
)


def pointwise(
    lowering: Lowering, node: torch.fx.Node, formula: str, operands: list[Value], dtype: str
) -> Value:
    """Return the value of a formula of `{0}`, `{1}` …, computed in `dtype`."""
    shape, result = shape_of(node), dtype_of(node)
    block = lowering.block
    for place, operand in enumerate(operands):
        mentions = formula.count(f"{{{place}}}")
        if mentions > 1 or operand.cost > 30:
            operands[place] = block.once(operand)

    def element(subscripts: Subscripts) -> str:
        operand_sources = [other.as_type(dtype, subscripts) for other in operands]
        return converted(f"({formula.format(*operand_sources)})", formula_type, result)

    formula_type = "bool" if _is_boolean(formula) else dtype
    return Value(shape, result, element, 1 + sum(operand.cost for operand in operands))


def _is_boolean(formula: str) -> bool:
    operators = formula.split(" ")
    is_comparison = not _BOOLEAN.isdisjoint(operators)
    return (is_comparison or formula.startswith("!")) and "?" not in formula


def computed_type(operands: list[Any]) -> str:
    """Return the type in which eager computes an operator with these operands."""
    metas = [
        meta_of(operand) if isinstance(operand, torch.fx.Node) else operand for operand in operands
    ]
    dtype: torch.dtype | None = None
    if len(metas) == 1:
        first = metas[0]
        dtype = first.dtype if isinstance(first, torch.Tensor) else torch.result_type(first, first)
    else:
        dtype = torch.result_type(metas[0], metas[1])
        for more in metas[2:]:
            dtype = torch.result_type(torch.empty(0, dtype=dtype), more)
    if dtype not in DTYPES:
        raise UnsupportedError(f"{dtype} has no rules.")
    return DTYPES[dtype]


@rule(*(f"aten.{name}" for name in _FORMULAS))
def same_type(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower operators computed in the joined type of their operands."""
    name = str(node.target).removeprefix("aten.")
    formula = _FORMULAS[name]
    count = 2 if "{1}" in formula else 1
    operands = list(node.args[:count])
    if name.startswith(("add", "sub", "rsub")):
        alpha = argument(node, 2, "alpha", 1)
        if alpha != 1:
            if isinstance(alpha, float) and not dtype_of(node).startswith("float"):
                raise UnsupportedError("`alpha` is a float.")
            place = 0 if name.startswith("rsub") else 1
            scaled = literal(alpha) if isinstance(alpha, float) else f"({int(alpha)})"
            formula = formula.replace(f"{{{place}}}", f"{scaled} * {{{place}}}")
    dtype = dtype_of(node)
    if name in _LOGICAL:
        dtype = "bool"
    if name.startswith("bitwise") and dtype != "bool":
        raise UnsupportedError("Bitwise operators of integers are not supported.")
    if name in ("add.Tensor", "mul.Tensor") and dtype == "bool":
        formula = "{0} || {1}" if name == "add.Tensor" else "{0} && {1}"
    if name in ("maximum.default", "minimum.default") and not dtype.startswith("float"):
        formula = f"{name[:3]}({{0}}, {{1}})"
    return pointwise(
        lowering, node, formula, [lowering.operand(operand) for operand in operands], dtype
    )


@rule(*(f"aten.{name}" for name in _FLOAT_FORMULAS))
def float_type(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower operators whose result is always a float."""
    formula = _FLOAT_FORMULAS[str(node.target).removeprefix("aten.")]
    count = 2 if "{1}" in formula else 1
    dtype = dtype_of(node)
    if not dtype.startswith("float"):
        raise UnsupportedError("Its result is not a float.")
    return pointwise(
        lowering, node, formula, [lowering.operand(operand) for operand in node.args[:count]], dtype
    )


@rule(*(f"aten.{name}.default" for name in _FUNCTIONS))
def function(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower functions of one operand."""
    name = _FUNCTIONS[str(node.target).split(".")[1]]
    dtype = dtype_of(node)
    if not dtype.startswith("float"):
        if name not in ("floor", "ceil", "trunc"):
            raise UnsupportedError("Its result is not a float.")
        return lowering.value(node.args[0])
    return pointwise(lowering, node, f"{name}({{0}})", [lowering.value(node.args[0])], dtype)


@rule("aten.round.default")
def round_(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower rounding; ties go to the even neighbour, like IEEE's remainder."""
    dtype = dtype_of(node)
    if not dtype.startswith("float"):
        return lowering.value(node.args[0])
    formula = "{0} - remainder({0}, 1.0)"
    return pointwise(lowering, node, formula, [lowering.value(node.args[0])], dtype)


@rule(*(f"aten.{name}.{kind}" for name in _COMPARISONS for kind in ("Tensor", "Scalar")))
def comparison(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower comparisons, computed in the joined type of both operands."""
    sign = _COMPARISONS[str(node.target).split(".")[1]]
    dtype = computed_type(list(node.args[:2]))
    operands = [lowering.operand(operand) for operand in node.args[:2]]
    return pointwise(lowering, node, f"{{0}} {sign} {{1}}", operands, dtype)


@rule("aten.isnan.default", "aten.isinf.default")
def not_finite(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower tests for NaN and infinity."""
    operand = lowering.value(node.args[0])
    if not operand.dtype.startswith("float"):
        raise UnsupportedError("Its operand is not a float.")
    is_nan = str(node.target) == "aten.isnan.default"
    formula = "{0} != {0}" if is_nan else "{0} == 1e999 || {0} == (-1e999)"
    return pointwise(lowering, node, formula, [operand], operand.dtype)


@rule("aten.pow.Tensor_Scalar")
def power(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower powers with a constant exponent; common exponents avoid `pow`."""
    base, exponent = lowering.value(node.args[0]), node.args[1]
    dtype = dtype_of(node)
    formulas = {1: "{0}", 2: "{0} * {0}", 3: "{0} * {0} * {0}"}
    if exponent in formulas:
        return pointwise(lowering, node, formulas[int(exponent)], [base], dtype)  # type: ignore[arg-type]
    if not dtype.startswith("float") or not isinstance(exponent, int | float):
        raise UnsupportedError("Its result is not a float.")
    special = {0.5: "sqrt({0})", -0.5: "rsqrt({0})", -1: "1.0 / {0}", 0: "1.0"}
    formula = special.get(exponent, f"pow({{0}}, {literal(float(exponent))})")
    return pointwise(lowering, node, formula, [base], dtype)


@rule("aten.gelu.default")
def gelu(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower both forms of GELU."""
    formula = "0.5 * {0} * (1.0 + erf({0} * 0.7071067811865476))"
    if argument(node, 1, "approximate", "none") == "tanh":
        inner = "0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})"
        formula = f"0.5 * {{0}} * (1.0 + tanh({inner}))"
    return pointwise(lowering, node, formula, [lowering.value(node.args[0])], dtype_of(node))


@rule("aten.leaky_relu.default", "aten.elu.default", "aten.softplus.default")
def with_numbers(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower activations with parameters."""
    name = str(node.target)
    if name == "aten.leaky_relu.default":
        slope = literal(float(argument(node, 1, "negative_slope", 0.01)))
        formula = f"{{0}} > 0 ? {{0}} : {{0}} * {slope}"
    elif name == "aten.elu.default":
        alpha, scale, inner = (
            float(argument(node, place, parameter, 1.0))
            for place, parameter in ((1, "alpha"), (2, "scale"), (3, "input_scale"))
        )
        negative = f"{literal(alpha * scale)} * expm1({{0}} * {literal(inner)})"
        formula = f"{{0}} > 0 ? {{0}} * {literal(scale)} : {negative}"
    else:
        beta = float(argument(node, 1, "beta", 1.0))
        threshold = float(argument(node, 2, "threshold", 20.0))
        scaled = f"({{0}} * {literal(beta)})"
        formula = (
            f"{scaled} > {literal(threshold)} ? {{0}} : log1p(exp({scaled})) / {literal(beta)}"
        )
    return pointwise(lowering, node, formula, [lowering.value(node.args[0])], dtype_of(node))


@rule(
    "aten.clamp.default",
    "aten.hardtanh.default",
    "aten.clamp_min.default",
    "aten.clamp_max.default",
)
def clamp(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower clamping to constants; NaN is preserved."""
    name = str(node.target)
    low, high = argument(node, 1, "min"), argument(node, 2, "max")
    if name == "aten.hardtanh.default":
        low, high = argument(node, 1, "min_val", -1), argument(node, 2, "max_val", 1)
    if name == "aten.clamp_max.default":
        low, high = None, argument(node, 1, "max")
    dtype = dtype_of(node)
    formula = "{0}"
    for limit, pick in ((low, "max"), (high, "min")):
        if limit is None:
            continue
        if not isinstance(limit, int | float) or isinstance(limit, bool):
            raise UnsupportedError("A limit is not a number.")
        if isinstance(limit, int) and abs(limit) >= 1 << 31:
            raise UnsupportedError("A literal does not fit into int32.")
        text = literal(float(limit)) if dtype.startswith("float") else f"({int(limit)})"
        formula = f"{pick}({text}, {formula})"
    return pointwise(lowering, node, formula, [lowering.value(node.args[0])], dtype)


@rule("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower a selection between two operands."""
    operands = [lowering.operand(operand) for operand in node.args[:3]]
    return _select(lowering, node, operands)


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower filling with a number under a mask."""
    value, mask, number = (lowering.operand(operand) for operand in node.args[:3])
    return _select(lowering, node, [mask, number, value])


def _select(lowering: Lowering, node: torch.fx.Node, operands: list[Value]) -> Value:
    shape, dtype = shape_of(node), dtype_of(node)
    condition, positive, negative = (
        lowering.block.stored(operand) if operand.cost > 30 else operand for operand in operands
    )

    def element(s: Subscripts) -> str:
        branches = f"{positive.as_type(dtype, s)} : {negative.as_type(dtype, s)}"
        return f"({condition.as_type('bool', s)} ? {branches})"

    return Value(shape, dtype, element, 1 + sum(operand.cost for operand in operands))


@rule("aten._to_copy.default", "prims.convert_element_type.default", "aten.to.dtype")
def convert(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower a cast; a conversion to the same type returns the operand."""
    source, dtype = lowering.value(node.args[0]), dtype_of(node)
    if source.dtype == dtype:
        return source
    is_exact = dtype.startswith("float") or dtype in ("bool", "int64", "int32")
    if source.dtype.startswith("float") and not is_exact:
        raise UnsupportedError("Casts from floats to narrow integers are undefined.")
    return Value(source.shape, dtype, lambda s: f"{dtype}({source.at(s)})", source.cost + 1)


@rule("aten.div.Tensor_mode", "aten.floor_divide.default", "aten.div.Scalar_mode")
def rounded_division(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower division rounded down or towards zero."""
    is_floor = str(node.target) == "aten.floor_divide.default"
    mode = "floor" if is_floor else argument(node, 2, "rounding_mode")
    operands = [lowering.operand(operand) for operand in node.args[:2]]
    dtype = dtype_of(node)
    if dtype.startswith("float"):
        if mode is None:
            return pointwise(lowering, node, "{0} / {1}", operands, dtype)
        rounding = "floor" if mode == "floor" else "trunc"
        return pointwise(lowering, node, f"{rounding}({{0}} / {{1}})", operands, dtype)
    if mode != "floor":
        raise UnsupportedError("Integer division towards zero is not supported.")
    return pointwise(lowering, node, "{0} / {1}", operands, dtype)


@rule("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.fmod.Tensor", "aten.fmod.Scalar")
def remainder(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower remainders with the sign of the divisor or of the dividend."""
    operands = [lowering.operand(operand) for operand in node.args[:2]]
    dtype = dtype_of(node)
    if "fmod" in str(node.target):
        if not dtype.startswith("float"):
            raise UnsupportedError("Integer division towards zero is not supported.")
        return pointwise(lowering, node, "fmod({0}, {1})", operands, dtype)
    return pointwise(lowering, node, "{0} % {1}", operands, dtype)


@rule("aten.addcmul.default", "aten.addcdiv.default", "aten.lerp.Scalar")
def three_operands(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower operators of three operands."""
    dtype = dtype_of(node)
    if not dtype.startswith("float"):
        raise UnsupportedError("Its result is not a float.")
    if str(node.target) == "aten.lerp.Scalar":
        operands = [lowering.operand(operand) for operand in node.args[:2]]
        weight = literal(float(node.args[2]))  # type: ignore[arg-type]
        return pointwise(lowering, node, f"{{0}} + {weight} * ({{1}} - {{0}})", operands, dtype)
    scale = literal(float(argument(node, 3, "value", 1)))
    sign = "*" if "addcmul" in str(node.target) else "/"
    operands = [lowering.operand(operand) for operand in node.args[:3]]
    return pointwise(lowering, node, f"{{0}} + {scale} * {{1}} {sign} {{2}}", operands, dtype)
