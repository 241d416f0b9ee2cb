"""Rules for operators that create tensors."""

from __future__ import annotations

from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value
from .registry import Lowering, argument, constant, dtype_of, rule, shape_of


@rule(
    *("aten.full.default", "aten.full_like.default", "aten.scalar_tensor.default"),
    *("aten.zeros.default", "aten.zeros_like.default", "aten.ones.default"),
    *("aten.ones_like.default", "aten.new_zeros.default", "aten.new_ones.default"),
    *("aten.new_full.default", "aten.fill.Scalar"),
)
def full(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower tensors filled with one number."""
    del lowering
    name = str(node.target).split(".")[1]
    number: Any = 0 if "zeros" in name else 1
    if name in ("full", "full_like", "fill"):
        number = node.args[1]
    if name == "new_full":
        number = node.args[2]
    if name == "scalar_tensor":
        number = node.args[0]
    dtype = dtype_of(node)
    if isinstance(number, float) and not dtype.startswith("float"):
        raise UnsupportedError("A float does not fit into its integer dtype.")
    value = constant(number)
    return Value(shape_of(node), dtype, lambda _: value.as_type(dtype, ()), 1)


@rule("aten.arange.start_step", "aten.arange.default", "aten.arange.start")
def arange(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower ranges of numbers."""
    del lowering
    name = str(node.target)
    start = 0 if name == "aten.arange.default" else node.args[0]
    step = argument(node, 2, "step", 1) if name == "aten.arange.start_step" else 1
    dtype = dtype_of(node)
    if not isinstance(start, int) or not isinstance(step, int):
        raise UnsupportedError("Its start or step is not an integer.")
    if abs(start) + abs(step) * shape_of(node)[0] >= 1 << 31:
        raise UnsupportedError("Its values do not fit into int32.")

    def element(s: Subscripts) -> str:
        text = s[0].times(step).shifted(start).text
        return f"{dtype}({text})"

    return Value(shape_of(node), dtype, element, 1)
