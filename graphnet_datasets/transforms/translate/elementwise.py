"""Rules for elementwise operators."""

from __future__ import annotations

import operator
from typing import Any

from ...sample.arguments import Named
from .handles import Number, RefusedError, Tensor, category, promoted
from .registry import rule
from .writer import Writer, broadcast

_UNARY = """
    abs acos acosh asin asinh atan atanh ceil conj cos cosh digamma erf erfinv exp expm1 floor
    isfinite isinf isnan lgamma log log10 log1p log2 reciprocal rsqrt sigmoid sign sin sinh sqrt
    square tan tanh trunc
"""
_SAME = {"isfinite", "isinf", "isnan", "abs", "sign", "square", "conj", "ceil", "floor", "trunc"}
"""Operators that accept integers without a cast."""


def _unary(name: str) -> Any:
    def write(w: Writer, input: Any) -> Any:
        if name not in _SAME:
            input = w.as_tensor(input, w.dtype)
        return w.emit(name, input, dtype=w.dtype, shape=input.shape)

    return write


for _name in _UNARY.split():
    rule(_name)(_unary(_name))


@rule("round")
def round_(w: Writer, input: Tensor, *, decimals: int = 0) -> Tensor:
    return w.emit("round", input, decimals, dtype=input.dtype, shape=input.shape)


@rule("neg", "negative", "operator.neg")
def neg(w: Writer, input: Any) -> Any:
    if not isinstance(input, Tensor):
        return on_numbers(w, operator.neg, input)
    return w.scale(input, -1.0)


@rule("logical_not", "operator.invert", "operator.not_")
def logical_not(w: Writer, input: Any) -> Any:
    if not isinstance(input, Tensor):
        return on_numbers(w, operator.not_, input)
    return w.emit("logical_not", w.cast(input, "bool"), dtype="bool", shape=input.shape)


@rule("bitwise_not")
def bitwise_not(w: Writer, input: Tensor) -> Tensor:
    return w.emit("bitwise_not", input, dtype=input.dtype, shape=input.shape)


def on_numbers(w: Writer, function: Any, *operands: Any) -> Any:
    """Compute on Python numbers: immediately if all are known, otherwise at run time."""
    if not any(isinstance(operand, Number) for operand in operands):
        return function(*operands)
    kinds = [operand.kind if isinstance(operand, Number) else type(operand) for operand in operands]
    kind = max(kinds, key=(bool, int, float).index)
    if function in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        kind = bool
    elif function is operator.truediv:
        kind = float
    return w.compute(f"operator.{function.__name__}", kind, *operands)


def arithmetic(w: Writer, name: str, x: Any, y: Any) -> Tensor:
    """Write an operator on two tensors or numbers, in the dtype of torch's result."""
    return w.binary(name, w.as_tensor(x, w.dtype), w.as_tensor(y, w.dtype))


@rule("add", "operator.add")
def add(w: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(w, operator.add, input, other)
    if isinstance(other, Tensor) and alpha != 1:
        other = w.scale(w.cast(other, w.dtype), alpha)
    elif alpha != 1:
        other = on_numbers(w, operator.mul, other, alpha)
    if w.dtype == "bool":
        return compare(w, "logical_or", input, other)
    if not isinstance(other, Tensor):
        return w.scale(w.cast(input, w.dtype), 1.0, other)
    if not isinstance(input, Tensor):
        return w.scale(w.cast(other, w.dtype), 1.0, input)
    return arithmetic(w, "add", input, other)


@rule("sub", "subtract", "operator.sub")
def sub(w: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(w, operator.sub, input, other)
    if isinstance(other, Tensor) and alpha != 1:
        other = w.scale(w.cast(other, w.dtype), alpha)
    if isinstance(other, Tensor) and not isinstance(input, Tensor):
        return w.scale(w.cast(other, w.dtype), -1.0, input)
    if isinstance(other, int | float):
        return w.scale(w.cast(input, w.dtype), 1.0, -other * alpha)
    return arithmetic(w, "subtract", input, other)


@rule("torch.rsub", "torch.Tensor.rsub")
def rsub(w: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return sub(w, other, input, alpha=alpha)


@rule("mul", "multiply", "operator.mul")
def mul(w: Writer, input: Any, other: Any) -> Any:
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(w, operator.mul, input, other)
    if w.dtype == "bool":
        return compare(w, "logical_and", input, other)
    if not isinstance(other, Tensor):
        return w.scale(w.cast(input, w.dtype), other)
    if not isinstance(input, Tensor):
        return w.scale(w.cast(other, w.dtype), input)
    return arithmetic(w, "multiply", input, other)


@rule("div", "divide", "true_divide", "operator.truediv")
def div(w: Writer, input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return floor_divide(w, input, other)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(w, operator.truediv, input, other)
    if rounding_mode is not None and category(w.dtype) < 2:
        raise RefusedError("Integer division towards zero is not supported.")
    quotient = arithmetic(w, "divide", input, other)
    if rounding_mode is None:
        return quotient
    return w.emit("trunc", quotient, dtype=w.dtype, shape=quotient.shape)


@rule("floor_divide", "operator.floordiv")
def floor_divide(w: Writer, input: Any, other: Any) -> Any:
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(w, operator.floordiv, input, other)
    return arithmetic(w, "floor_divide", input, other)


@rule("remainder", "operator.mod")
def remainder(w: Writer, input: Any, other: Any) -> Any:
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        return on_numbers(w, operator.mod, input, other)
    return arithmetic(w, "remainder", input, other)


@rule("pow", "operator.pow")
def pow_(w: Writer, input: Any, exponent: Any) -> Any:
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        return on_numbers(w, operator.pow, input, exponent)
    if isinstance(exponent, Tensor | Number):
        return arithmetic(w, "elementwise_pow", input, exponent)
    x = w.cast(input, w.dtype)
    special = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if exponent in special:
        return w.emit(special[exponent], x, dtype=w.dtype, shape=x.shape)
    return w.emit("pow", x, exponent, dtype=w.dtype, shape=x.shape)


@rule("maximum", "torch.max.other")
def maximum(w: Writer, input: Tensor, other: Tensor) -> Tensor:
    return arithmetic(w, "maximum", input, other)


@rule("minimum", "torch.min.other")
def minimum(w: Writer, input: Tensor, other: Tensor) -> Tensor:
    return arithmetic(w, "minimum", input, other)


@rule("atan2")
def atan2(w: Writer, input: Tensor, other: Tensor) -> Tensor:
    shape = broadcast(input.shape, other.shape)
    wide = [w.expand(w.cast(operand, w.dtype), shape) for operand in (input, other)]
    return w.emit("atan2", *wide, dtype=w.dtype, shape=shape)


def compare(w: Writer, name: str, x: Any, y: Any) -> Tensor:
    """Write an operator on two tensors or numbers that returns booleans."""
    dtype = "bool" if name.startswith("logical") else promoted(x, y)
    return w.binary(name, w.as_tensor(x, dtype), w.as_tensor(y, dtype), "bool")


def _comparison(name: str, function: Any) -> Any:
    def write(w: Writer, input: Any, other: Any) -> Any:
        if not isinstance(input, Tensor) and not isinstance(other, Tensor):
            return on_numbers(w, function, input, other)
        return compare(w, name, input, other)

    return write


for _names, _target, _function in (
    (("eq", "operator.eq"), "equal", operator.eq),
    (("ne", "not_equal", "operator.ne"), "not_equal", operator.ne),
    (("lt", "less", "operator.lt"), "less_than", operator.lt),
    (("le", "less_equal", "operator.le"), "less_equal", operator.le),
    (("gt", "greater", "operator.gt"), "greater_than", operator.gt),
    (("ge", "greater_equal", "operator.ge"), "greater_equal", operator.ge),
):
    rule(*_names)(_comparison(_target, _function))


_ON_INTEGERS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _bitwise(word: str) -> Any:
    def write(w: Writer, input: Any, other: Any) -> Any:
        if not isinstance(input, Tensor) and not isinstance(other, Tensor):
            return on_numbers(w, _ON_INTEGERS[word], input, other)
        if w.dtype == "bool":
            return compare(w, f"logical_{word}", input, other)
        return arithmetic(w, f"bitwise_{word}", input, other)

    return write


def _logical(word: str) -> Any:
    def write(w: Writer, input: Any, other: Any) -> Tensor:
        return compare(w, f"logical_{word}", input, other)

    return write


for _word in ("and", "or", "xor"):
    rule(f"bitwise_{_word}", f"operator.{_word}_" if _word != "xor" else "operator.xor")(
        _bitwise(_word)
    )
    rule(f"logical_{_word}")(_logical(_word))


@rule("operator.abs")
def absolute(w: Writer, input: Tensor) -> Tensor:
    return w.emit("abs", input, dtype=input.dtype, shape=input.shape)


@rule("torch.where", "torch.Tensor.where")
def where(w: Writer, condition: Tensor, input: Any, other: Any) -> Tensor:
    return choose(w, condition, w.as_tensor(input, w.dtype), w.as_tensor(other, w.dtype))


def choose(w: Writer, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return `x` where the condition is true and `y` elsewhere, with broadcasting."""
    shape = broadcast(condition.shape, x.shape, y.shape)
    wide = [w.expand(operand, shape) for operand in (condition, x, y)]
    return w.emit("where", *wide, dtype=x.dtype, shape=shape)


@rule("masked_fill")
def masked_fill(w: Writer, input: Tensor, mask: Tensor, value: Any) -> Tensor:
    return choose(w, mask, w.as_tensor(value, input.dtype), input)


@rule("clamp", "clip")
def clamp(w: Writer, input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    x = w.cast(input, w.dtype)
    if not isinstance(min, Tensor) and not isinstance(max, Tensor) and category(w.dtype) == 2:
        low = float("-inf") if min is None else min
        return w.emit(
            "clip", x, low, float("inf") if max is None else max, dtype=w.dtype, shape=x.shape
        )
    if min is not None:
        x = arithmetic(w, "maximum", x, min)
    return x if max is None else arithmetic(w, "minimum", x, max)


@rule("clamp_min")
def clamp_min(w: Writer, input: Tensor, min: Any) -> Tensor:
    return clamp(w, input, min)


@rule("clamp_max")
def clamp_max(w: Writer, input: Tensor, max: Any) -> Tensor:
    return clamp(w, input, None, max)


@rule("lerp")
def lerp(w: Writer, input: Tensor, end: Tensor, weight: Any) -> Tensor:
    step = w.binary("subtract", end, input)
    scaled = w.binary("multiply", step, w.as_tensor(weight, w.dtype))
    return w.binary("add", input, scaled)


@rule("addcmul")
def addcmul(
    w: Writer, input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1
) -> Tensor:
    return w.binary("add", input, w.scale(w.binary("multiply", tensor1, tensor2), value))


def cast(w: Writer, x: Tensor, dtype: Any) -> Tensor:
    """Return a tensor in the dtype given by a named constant."""
    if not isinstance(dtype, Named) or dtype.kind != "dtype":
        raise RefusedError("Its dtype is not a constant.")
    return w.cast(x, dtype.name)
