"""Registry of rules, which lower the nodes of an aten graph to values and statements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from .block import Block, UnsupportedError, Value, number_text

Rule = Callable[..., Any]
"""Called as `rule(lowering, node)`; returns a `Value`, or a tuple of values for several results."""

RULES: dict[str, Rule] = {}
"""Rules by operator name, such as `aten.add.Tensor`."""

VIEWS: set[str] = set()
"""Operators that compute nothing; a group never consists only of views."""

DTYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
    torch.float16: "float32",
    torch.bfloat16: "float32",
}
"""Supported dtypes and the types they are computed in; 16-bit floats are rounded after each
rule.
"""

STORED_DTYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
"""Dtypes whose tensors are stored in a type other than the computation type."""


def rule(*names: str, is_view: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule for operators by name."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
            if is_view:
                VIEWS.add(name)
        return function

    return register


def operator_name(node: torch.fx.Node) -> str:
    """Return the operator name of a call, such as `aten.add.Tensor`, or ""."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return ""
    return str(node.target)


def meta_of(node: Any) -> torch.Tensor:
    """Return the fake tensor of a node.

    Raises:
        UnsupportedError: the node has no tensor, a symbolic size or a type without rules.
    """
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        raise UnsupportedError("The value is not a single tensor.")
    if any(not isinstance(size, int) for size in value.shape):
        raise UnsupportedError("A size is symbolic.")
    if value.dtype not in DTYPES:
        raise UnsupportedError(f"{value.dtype} has no rules.")
    if value.numel() == 0:
        raise UnsupportedError("The tensor is empty.")
    if value.layout is not torch.strided:
        raise UnsupportedError("The tensor is sparse.")
    return value


class Lowering:
    """Lowers the nodes of one group to a definition.

    Attributes:
        block: the definition.
        values: values of inputs and lowered nodes; a tuple for several results.
    """

    def __init__(self, name: str) -> None:
        self.block = Block(name)
        self.values: dict[torch.fx.Node, Any] = {}

    def lower(self, node: torch.fx.Node) -> None:
        """Lower a node whose operands have values.

        Raises:
            UnsupportedError: no rule covers this form of the operator.
        """
        if node.target is operator.getitem:
            value = self.values[node.args[0]][node.args[1]]  # type: ignore[index]
            if value is None and node.users:
                raise UnsupportedError("This result is not computed.")
        else:
            value = RULES[operator_name(node)](self, node)
        if isinstance(value, Value) and not _only_moves(node):
            value = _rounded(value, STORED_DTYPES.get(meta_of(node).dtype))
        self.values[node] = value

    def parameter(self, node: torch.fx.Node) -> Value:
        """Add an input of the definition for a node outside the group.

        Raises:
            UnsupportedError: the node is not a tensor of a supported dtype.
        """
        meta = meta_of(node)
        stored = STORED_DTYPES.get(meta.dtype)
        value = self.block.parameter(node.name, meta.shape, stored or DTYPES[meta.dtype])
        self.values[node] = widened(value) if stored else value
        return value

    def output(self, value: Value, node: torch.fx.Node) -> Value:
        """Store a value in its own tensor with the dtype expected by the rest of the graph."""
        stored = STORED_DTYPES.get(meta_of(node).dtype)
        if not stored:
            return self.block.output(value, node.name)
        narrow = f"{stored}({{}})".format
        return self.block.store(
            node.name, value.shape, stored, lambda s, _: narrow(value.element(s))
        )

    def value(self, argument: Any) -> Value:
        """Return the value of a tensor operand."""
        value = self.values.get(argument) if isinstance(argument, torch.fx.Node) else None
        if not isinstance(value, Value):
            raise UnsupportedError("An operand is not a tensor.")
        return value

    def operand(self, argument: Any) -> Value:
        """Return the value of an operand that may be a number."""
        if isinstance(argument, torch.fx.Node):
            return self.value(argument)
        return constant(argument)


def widened(value: Value) -> Value:
    """Convert a stored 16-bit tensor to the computation type."""
    return Value(value.shape, "float32", lambda s: f"float32({value.element(s)})", 1)


def _only_moves(node: torch.fx.Node) -> bool:
    """Return whether the elements of a node are elements of an operand."""
    source = node.args[0] if node.target is operator.getitem else node
    return isinstance(source, torch.fx.Node) and operator_name(source) in VIEWS


def _rounded(value: Value, stored: str | None) -> Value:
    """Round a value to its storage dtype, as eager does between operators."""
    if stored is None:
        return value
    element = value.element
    cost = value.cost + 1
    return Value(value.shape, "float32", lambda s: f"float32({stored}({element(s)}))", cost)


def constant(number: Any) -> Value:
    """Return a Python number as a value of the smallest type of its kind."""
    if isinstance(number, bool):
        text = "1 == 1" if number else "1 == 0"
        return Value((), "bool", lambda _: f"({text})")
    if isinstance(number, int):
        if not -(1 << 31) < number < 1 << 31:
            raise UnsupportedError("A literal does not fit into int32.")
        return Value((), "int32", lambda _: number_text(number), number=number)
    if isinstance(number, float):
        return Value((), "float32", lambda _: number_text(number), number=number)
    raise UnsupportedError(f"An operand is of type {type(number).__name__}.")


def dtype_of(node: torch.fx.Node) -> str:
    """Return the computation type of a node."""
    return DTYPES[meta_of(node).dtype]


def shape_of(node: torch.fx.Node) -> tuple[int, ...]:
    """Return the shape of a node."""
    return tuple(meta_of(node).shape)


def argument(node: torch.fx.Node, place: int, name: str, default: Any = None) -> Any:
    """Return an argument by position or name."""
    if len(node.args) > place:
        return node.args[place]
    return node.kwargs.get(name, default)
