"""Floating-point operations of single ATen calls.

Matrix products, convolutions and attention follow `torch.utils.flop_counter`, which counts a
multiply-add as two operations. Other operators use the `flops` fact of their table entry: one per
result element for an elementwise operator, and one per input element for a reduction. A softmax
costs five (maximum, difference, exponential, sum, quotient). A normalization costs eight: mean (1),
variance (3), difference and quotient (2), scale and shift (2).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import conv_flop_count, flop_registry, sdpa_flop_count

from ....operators import OperatorNames, OperatorValues
from .live_memory import tensors_in

Formula = Callable[[Sequence[Any], Any], int]
"""Computes the number of operations from the arguments and the result of a call."""


def count_flops(function: torch._ops.OpOverload, args: Sequence[Any], result: Any) -> int | None:
    """Return the operations of one ATen call on real or fake tensors, or None without a formula.

    >>> a = torch.ones(2, 3)
    >>> count_flops(torch.ops.aten.mm.default, (a, a.T), a @ a.T)
    24
    >>> count_flops(torch.ops.aten.relu.default, (a,), a)
    6
    """
    formula = _formula_of(function)
    if formula is None:
        return None
    try:
        flops = formula(args, result)
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError, AssertionError):
        return None  # the formula does not support these arguments
    return flops if type(flops) is int else None


@functools.cache
def _formula_of(function: torch._ops.OpOverload) -> Formula | None:
    packet = function.overloadpacket
    name = function._schema.name.partition("::")[2]
    if packet in flop_registry:
        library = flop_registry[packet]
        return lambda args, result: library(*args, out_val=result)
    flops = _FLOPS.get(name, "")
    if flops in _FORMULAS:
        return _FORMULAS[flops]
    if is_view(function) or flops == "0":
        return lambda _args, _result: 0
    if flops[:-1].isdigit():  # per element of the first argument
        weight = int(flops[:-1])
        return lambda args, _result: weight * _first(args).numel()
    if flops == "sort":
        return _sort_flops
    is_pointwise = _FLOPS.get(name.removesuffix("_")) == "pointwise"
    return _elementwise if is_pointwise or torch.Tag.pointwise in function.tags else None


_ALIASES = OperatorNames("aliases")
_FLOPS = OperatorValues("flops")


@functools.cache
def is_view(function: torch._ops.OpOverload) -> bool:
    """Return whether a call returns views of its argument and moves no data."""
    returns = function._schema.returns
    return function._schema.name.partition("::")[2] in _ALIASES or (
        bool(returns)
        and all(item.alias_info is not None and not item.alias_info.is_write for item in returns)
    )


def _first(args: Sequence[Any]) -> torch.Tensor:
    return next(tensors_in(list(args)))


def _elementwise(_args: Sequence[Any], result: Any) -> int:
    if isinstance(result, tuple):  # the result comes with a mask or buffer
        return next(tensors_in(result)).numel()
    return sum(tensor.numel() for tensor in tensors_in(result))


def _sort_flops(args: Sequence[Any], _result: Any) -> int:
    tensor = args[0]
    dim = next((arg for arg in args[1:] if type(arg) is int), -1)
    length = tensor.shape[dim] if tensor.dim() else 1
    return tensor.numel() * max(1, math.ceil(math.log2(max(length, 2))))


def _matrix_vector(args: Sequence[Any], _result: Any) -> int:
    return 2 * args[0].numel()


def _attention(args: Sequence[Any], _result: Any) -> int:
    return sdpa_flop_count(args[0].shape, args[1].shape, args[2].shape)


def _convolution(args: Sequence[Any], result: Any) -> int:
    return conv_flop_count(args[0].shape, args[1].shape, result.shape)


def _row_product(args: Sequence[Any], result: Any) -> int:
    # Each row of the result is a product with one matrix, or with the matrix of the row's group.
    return 2 * result.numel() * args[0].shape[-1]


def _pool(args: Sequence[Any], result: Any) -> int:
    """Return one operation per window element; `kernel_size` is the second argument."""
    tensor = next(tensors_in(result))
    sizes = args[1]
    if len(sizes) == 1:
        sizes = list(sizes) * (tensor.dim() - 2)
    return tensor.numel() * math.prod(sizes)


def _interpolation(taps: int) -> Formula:
    return lambda _args, result: 2 * taps * result.numel()


def _distances(args: Sequence[Any], result: Any) -> int:
    return 3 * result.numel() * args[0].shape[-1]


def _lstm_layer(args: Sequence[Any], _result: Any) -> int:
    # The input and hidden products of each step, plus about ten operations per hidden element.
    tensor, input_weight, hidden_weight = args[0], args[1], args[2]
    steps = tensor.numel() // tensor.shape[-1]
    hidden = hidden_weight.shape[-1]
    return 2 * steps * (input_weight.numel() + hidden_weight.numel()) + 10 * steps * hidden


def _encoder_layer(args: Sequence[Any], result: Any) -> int:
    # Four weight products per token and two attention products, then norms, bias and activation.
    tensor, width = args[0], args[1]
    batch, length = tensor.shape[:2]
    weights = sum(args[place].numel() for place in (3, 5, 14, 16))
    products = 2 * batch * length * weights + 4 * batch * length * length * width
    return products + 2 * 8 * result.numel() + batch * length * args[14].shape[0]


def _gates(weight: int) -> Formula:
    return lambda _args, result: weight * next(tensors_in(result)).numel()


def _fourier(args: Sequence[Any], result: Any) -> int:
    """Return 5 n log2 n operations per complex transform, and half as many per real transform."""
    shape = (args[0] if args[0].numel() >= result.numel() else result).shape
    dims = args[1]
    size = math.prod(shape[dim] for dim in dims)
    is_complex = args[0].is_complex() and result.is_complex()
    flops = 5 * math.prod(shape) * math.log2(max(size, 2))
    return round(flops if is_complex else flops / 2)


def _cholesky(args: Sequence[Any], _result: Any) -> int:
    return args[0].numel() * args[0].shape[-1] // 3


_FORMULAS: dict[str, Formula] = {
    "attention": _attention,
    "batched_product": lambda args, _result: 2 * args[1].numel() * args[2].shape[-1],
    "cholesky": _cholesky,
    "convolution": _convolution,
    "distances": _distances,
    "encoder_layer": _encoder_layer,
    "fourier": _fourier,
    "lstm_layer": _lstm_layer,
    "matrix_vector": _matrix_vector,
    "pool": _pool,
    "row_product": _row_product,
    "second_matrix_vector": lambda args, _result: 2 * args[1].numel(),
    **{f"gates{weight}": _gates(weight) for weight in (3, 10)},
    **{f"taps{taps}": _interpolation(taps) for taps in (2, 4, 8, 16)},
}
"""Formulas by value of the `flops` fact."""
