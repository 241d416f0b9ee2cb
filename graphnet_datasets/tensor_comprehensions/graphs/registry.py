"""The rules by operator: how a node of an aten graph becomes values and statements."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from .block import Block, UnsupportedError, Value, number_text

Rule = Callable[..., Any]
"""Called as `rule(lowering, node)`; returns a `Value` or, for several results, a tuple of them."""

RULES: dict[str, Rule] = {}
"""By the operator's name, `aten.add.Tensor`."""

VIEWS: set[str] = set()
"""The operators that compute nothing; a group never consists of them alone."""

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
"""The types that rules take, as what they compute in: a 16-bit float is rounded after each one."""

STORED_DTYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
"""The types whose tensors hold another one than their operators compute in."""


def rule(*names: str, is_view: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule under the names of operators."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
            if is_view:
                VIEWS.add(name)
        return function

    return register


def operator_name(node: torch.fx.Node) -> str:
    """Return `aten.add.Tensor` of a node that calls it, "" for any other."""
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
        raise UnsupportedError("it has no single tensor")
    if any(not isinstance(each, int) for each in value.shape):
        raise UnsupportedError("its size is symbolic")
    if value.dtype not in DTYPES:
        raise UnsupportedError(f"{value.dtype} has no rules")
    if value.numel() == 0:
        raise UnsupportedError("it is empty")
    if value.layout is not torch.strided:
        raise UnsupportedError("it is sparse")
    return value


class Lowering:
    """Turns the nodes of one group into a definition.

    Attributes:
        block: the definition.
        values: the value, or tuple of values, of each node that was lowered or is an input.
    """

    def __init__(self, name: str) -> None:
        self.block = Block(name)
        self.values: dict[torch.fx.Node, Any] = {}

    def lower(self, node: torch.fx.Node) -> None:
        """Lower one node whose operands are known.

        Raises:
            UnsupportedError: no rule covers this form of the operator.
        """
        if node.target is operator.getitem:
            made = self.values[node.args[0]][node.args[1]]  # type: ignore[index]
            if made is None and node.users:
                raise UnsupportedError("this result is not computed")
        else:
            made = RULES[operator_name(node)](self, node)
        if isinstance(made, Value) and not _only_moves(node):
            made = _rounded(made, STORED_DTYPES.get(meta_of(node).dtype))
        self.values[node] = made

    def parameter(self, node: torch.fx.Node) -> Value:
        """Add a node of the rest of the graph as an input of the definition, and return that.

        Raises:
            UnsupportedError: it is not a tensor of a type that rules take.
        """
        meta = meta_of(node)
        stored = STORED_DTYPES.get(meta.dtype)
        made = self.block.parameter(node.name, meta.shape, stored or DTYPES[meta.dtype])
        self.values[node] = widened(made) if stored else made
        return made

    def output(self, value: Value, node: torch.fx.Node) -> Value:
        """Return a value as a tensor of its own of the type that the rest of the graph takes."""
        stored = STORED_DTYPES.get(meta_of(node).dtype)
        if not stored:
            return self.block.output(value, node.name)
        narrow = f"{stored}({{}})".format
        return self.block.store(
            node.name, value.shape, stored, lambda s, _: narrow(value.element(s))
        )

    def value(self, argument: Any) -> Value:
        """Return the value of an operand that has to be a tensor."""
        found = self.values.get(argument) if isinstance(argument, torch.fx.Node) else None
        if not isinstance(found, Value):
            raise UnsupportedError("an operand is not a tensor")
        return found

    def operand(self, argument: Any) -> Value:
        """Return the value of an operand that may be a number."""
        if isinstance(argument, torch.fx.Node):
            return self.value(argument)
        return constant(argument)


def widened(value: Value) -> Value:
    """Return a stored 16-bit tensor as what operators compute in."""
    return Value(value.shape, "float32", lambda s: f"float32({value.element(s)})", 1)


def _only_moves(node: torch.fx.Node) -> bool:
    """Tell whether the elements of a node's value are elements of an operand."""
    source = node.args[0] if node.target is operator.getitem else node
    return isinstance(source, torch.fx.Node) and operator_name(source) in VIEWS


def _rounded(value: Value, stored: str | None) -> Value:
    """Return a value as what is left of it where it is stored, as eager does in between."""
    if stored is None:
        return value
    element = value.element
    cost = value.cost + 1
    return Value(value.shape, "float32", lambda s: f"float32({stored}({element(s)}))", cost)


def constant(number: Any) -> Value:
    """Return a Python number as a value; its type is the least that its kind has."""
    if isinstance(number, bool):
        text = "1 == 1" if number else "1 == 0"
        return Value((), "bool", lambda _: f"({text})")
    if isinstance(number, int):
        if not -(1 << 31) < number < 1 << 31:
            raise UnsupportedError("a literal does not fit int32")
        return Value((), "int32", lambda _: number_text(number), number=number)
    if isinstance(number, float):
        return Value((), "float32", lambda _: number_text(number), number=number)
    raise UnsupportedError(f"an operand is {type(number).__name__}")


def dtype_of(node: torch.fx.Node) -> str:
    """Return the name of a node's type."""
    return DTYPES[meta_of(node).dtype]


def shape_of(node: torch.fx.Node) -> tuple[int, ...]:
    """Return a node's shape."""
    return tuple(meta_of(node).shape)


def argument(node: torch.fx.Node, place: int, name: str, default: Any = None) -> Any:
    """Return an argument by place or name."""
    if len(node.args) > place:
        return node.args[place]
    return node.kwargs.get(name, default)
