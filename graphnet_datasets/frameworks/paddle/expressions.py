"""Parsing of expressions in a Paddle `model.py` into arguments and operators, with `ast` only."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from ...errors import SourceError, UnknownOperatorError
from ...sample import Op, Value
from ...sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..source_text import source_error
from .operators import GETITEM, OPERATORS, canonical, lookup

_PLACES = {
    "paddle.framework._current_expected_place": "expected",
    "paddle.CPUPlace": "cpu",
    "paddle.core.CPUPlace": "cpu",
    "paddle.base.core.CPUPlace": "cpu",
    "paddle.CUDAPinnedPlace": "gpu_pinned",
    "paddle.core.CUDAPinnedPlace": "gpu_pinned",
}
PLACE_CALLS = {
    "expected": "paddle.framework._current_expected_place()",
    "cpu": "paddle.core.CPUPlace()",
    "gpu_pinned": "paddle.core.CUDAPinnedPlace()",
}
"""The source text of each place in generated files."""
_GPU_PLACES = ("paddle.CUDAPlace", "paddle.core.CUDAPlace", "paddle.base.core.CUDAPlace")
_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.MatMult: "matmul",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
}  # fmt: skip
_FLOAT = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?(?:e[+-]?\d{1,4})?|inf|nan)\Z")
_NAN, _INFINITY = math.nan, math.inf
"""A single NaN object, so that equal samples with NaN literals compare equal."""


class Expressions:
    """Converts expressions to arguments, and appends operator calls to `ops`."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.ops: list[Op] = []
        self.num_inputs = 0
        self.names: dict[str, Arg] = {}

    def error(self, node: ast.AST, problem: str) -> SourceError:
        """Return an error that points at the line of a node."""
        return source_error(self.file, getattr(node, "lineno", 1), problem)

    def emit(self, target: str, args: tuple[Any, ...], kwargs: Any = ()) -> Ref:
        """Append an operator call and return a reference to its result."""
        self.ops.append(Op(target, args, tuple(kwargs)))
        return Ref(self.num_inputs + len(self.ops) - 1)

    def record(self, results: tuple[Value, ...] | None) -> None:
        """Record the results of the last emitted operator."""
        op = self.ops[-1]
        self.ops[-1] = Op(op.target, op.args, op.kwargs, results, op.module)

    def expression(self, node: ast.expr) -> Arg:
        """Convert an expression to an argument.

        Raises:
            SourceError: the expression is not an operator call, a known name or a literal.
        """
        match node:
            case ast.Constant(value=value):
                return self._constant(node, value)
            case ast.Name(id=name):
                if name in self.names:
                    return self.names[name]
                raise self.error(node, f"the name `{name[:80]}` has no value there")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.expression(operand)
                if isinstance(number, int | float) and type(number) is not bool:
                    return -number
                raise self.error(node, "a minus sign is allowed only before a number")
            case ast.Tuple(elts=items):
                return tuple(self.expression(item) for item in items)
            case ast.List(elts=items):
                return ListArg(tuple(self.expression(item) for item in items))
            case ast.ListComp():
                return self._reshaped_items(node)
            case ast.Dict(keys=keys, values=values):
                texts = [self.expression(key) if key else None for key in keys]
                items = zip(texts, values, strict=True)
                return DictArg(tuple((text, self.expression(value)) for text, value in items))  # type: ignore[misc]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._binary(node, left, _BINARY[type(op)], right)
            case ast.Subscript(value=value, slice=ast.Constant(value=int(index))):
                return self._item(node, self.expression(value), index)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
        raise self.error(node, f"`{type(node).__name__}` is not an expression of a graph")

    def unpacked_call(self, node: ast.expr, num_names: int) -> ast.Call | None:
        """Return the call whose results are unpacked by the idiom `(lambda x, f: f(x))(call, …)`.

        The idiom pads missing results with None, since Paddle's eager mode does not return all of
        them. In a second form, `… + (None,)`, only the last result is missing.
        """
        match node:
            case ast.BinOp(
                left=ast.Call() as idiom,
                op=ast.Add(),
                right=ast.Tuple(elts=[ast.Constant(value=None)]),
            ):
                node = idiom
        match node:
            case ast.Call(
                func=ast.Lambda() as apply,
                args=[ast.Call() as call, ast.Lambda() as fill],
                keywords=[],
            ):
                if _is_application(apply) and _num_results(fill) == num_names:
                    return call
                raise self.error(node, "lambdas are allowed only to unpack results")
        return None

    def _constant(self, node: ast.expr, value: Any) -> Arg:
        if value is None or value is Ellipsis or type(value) in (bool, int, float, str):
            return value
        raise self.error(node, f"a literal of type `{type(value).__name__}` is not an argument")

    def _binary(self, node: ast.expr, left: ast.expr, name: str, right: ast.expr) -> Arg:
        operands = self.expression(left), self.expression(right)
        if not any(isinstance(operand, Ref) for operand in operands):
            raise self.error(node, "an operator combines literals, which a graph never does")
        return self.emit(f"operator.{name}", operands)

    def _item(self, node: ast.expr, value: Arg, index: int) -> Arg:
        if isinstance(value, Ref):
            return self.emit(GETITEM, (value, index))
        if isinstance(value, ListArg) and 0 <= index < len(value.items):
            return value.items[index]
        raise self.error(node, f"item {index} is taken of what does not have it")

    def _reshaped_items(self, node: ast.ListComp) -> ListArg:
        """Parse `[x.reshape([]) for x in name]`, which reshapes each item of a list to a scalar."""
        source = node.generators[0].iter
        if ast.unparse(node.elt) == "x.reshape([])" and isinstance(source, ast.Name):
            items = self.expression(source)
            if isinstance(items, ListArg) and (
                ast.unparse(node) == f"[x.reshape([]) for x in {source.id}]"
            ):
                shape = ListArg(())
                return ListArg(
                    tuple(self.emit("paddle.Tensor.reshape", (x, shape)) for x in items.items)
                )
        raise self.error(node, "a list comprehension is not an expression of a graph")

    def _attribute(self, node: ast.Attribute) -> Arg:
        name = dotted(node)
        if name and name.startswith("paddle.") and name[7:] in ITEM_SIZE_BYTES:
            return Named("dtype", name[7:])
        if f"paddle.Tensor.{node.attr}" in OPERATORS:
            operator = lookup(f"paddle.Tensor.{node.attr}")
            value = self.expression(node.value)
            if operator.kind == "attribute" and isinstance(value, Ref):
                return self.emit(operator.name, (value,))
        raise self.error(node, f"the attribute `{node.attr[:80]}` is not known")

    def _call(self, node: ast.Call) -> Arg:
        name = dotted(node.func)
        special = self._special(node, name)
        if special is not None:
            return special
        args: tuple[Any, ...] = ()
        if isinstance(node.func, ast.Attribute) and (
            name is None or name.split(".")[0] in self.names
        ):
            target = f"paddle.Tensor.{node.func.attr}"
            args = (self.expression(node.func.value),)
        else:
            target = canonical(name or "")
        try:
            operator = lookup(target)
        except UnknownOperatorError as error:
            raise UnknownOperatorError(f"`{self.file}`, line {node.lineno}: {error}") from None
        if operator.kind == "attribute":
            raise self.error(node, f"the attribute `{target}` is called")
        kwargs = []
        args += tuple(self.expression(argument) for argument in node.args)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(node, "keywords are unpacked from a dictionary")
            kwargs.append((keyword.arg, self.expression(keyword.value)))
        return self.emit(target, args, kwargs)

    def _special(self, node: ast.Call, name: str | None) -> Arg:
        """Return the literal that a call constructs, or None if the call is an operator call."""
        values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        is_plain = len(values) == len(node.args) and not node.keywords
        if name == "float" and is_plain and len(values) == 1:
            return self._float(node, values[0])
        if name in _PLACES and not node.args and not node.keywords:
            return Named("place", _PLACES[name])
        if name in _GPU_PLACES and is_plain and len(values) == 1 and type(values[0]) is int:
            return Named("place", f"gpu:{values[0]}")
        if name in ("slice", "complex") and not node.keywords:
            parts = [self.expression(argument) for argument in node.args]
            if name == "slice" and len(parts) == 3:
                return SliceArg(*parts)
            if name == "complex" and [type(part) for part in parts] == [float, float]:
                return complex(*parts)  # type: ignore[arg-type]
        return None

    def _float(self, node: ast.Call, value: Any) -> float:
        if type(value) is str and _FLOAT.match(value):
            number = float(value)
            return _NAN if math.isnan(number) else number
        raise self.error(node, "`float` is called with other than the text of a number")


def _is_application(node: ast.Lambda) -> bool:
    """Return whether a lambda is `lambda x, f: f(x)`."""
    match node:
        case ast.Lambda(
            args=ast.arguments(args=[ast.arg(arg="x"), ast.arg(arg="f")], defaults=[]),
            body=ast.Call(func=ast.Name(id="f"), args=[ast.Name(id="x")], keywords=[]),
        ):
            return True
    return False


def _num_results(node: ast.Lambda) -> int | None:
    """Return the number of results that a lambda pads to, or None for any other lambda.

    The lambda for three results is
    `lambda out: out if isinstance(out, (list, tuple)) else (out, None, None)`.
    """
    match node:
        case ast.Lambda(
            args=ast.arguments(args=[ast.arg(arg="out")], defaults=[]),
            body=ast.IfExp(
                test=ast.Call(
                    func=ast.Name(id="isinstance"),
                    args=[
                        ast.Name(id="out"),
                        ast.Tuple(elts=[ast.Name(id="list"), ast.Name(id="tuple")]),
                    ],
                    keywords=[],
                ),
                body=ast.Name(id="out"),
                orelse=ast.Tuple(elts=[ast.Name(id="out"), *rest]),
            ),
        ):
            if all(isinstance(item, ast.Constant) and item.value is None for item in rest):
                return 1 + len(rest)
    return None


def dotted(node: ast.expr) -> str | None:
    """Return the dotted name of an expression, or None if the expression is not a dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))
