"""Conversion of Python expressions to operators and arguments, without evaluation."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ....errors import UNKNOWN_ADVICE, UnknownOperatorError
from ....sample import Op
from ....sample.arguments import INT64_MAX, DictArg, ListArg, Named, Ref, SliceArg
from ...source_text import source_error
from ..operators import lookup
from .constants import CONSTANTS, is_device_name

MAX_DEPTH = 60
"""Maximum nesting of expressions; black-formatted captures nest fewer than ten levels."""

ROOTS = frozenset({"torch", "math", "operator", "builtins"})
"""Modules at the start of an operator's dotted name, unless an argument has the same name."""

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
UNARY: Mapping[type[ast.unaryop], str] = {
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not_",
}  # fmt: skip
COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip

_LITERALS = {"inf": math.inf, "nan": math.nan, "Ellipsis": ...}
_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_CONSTRUCTORS = frozenset({"slice", "device", "float", "complex"})
RESERVED = ROOTS | frozenset(_LITERALS) | _CONSTRUCTORS
"""Names with a fixed meaning, allowed as argument names but not as value names."""


UNUSABLE = object()
"""Placeholder for a name assigned something that is not part of a graph; reading it before it is
reassigned is an error."""

_CONTEXT = "torch.autograd.function.FunctionCtx"


class Lowering:
    """Converts expressions to operators and tracks the meaning of each name.

    Operators are appended to `ops` in Python's evaluation order. `names` maps each name of the
    graph to its argument, which is a reference or a literal.
    """

    def __init__(
        self, file: str, arguments: list[str], custom_operators: Sequence[str] = ()
    ) -> None:
        self.file = file
        self._customs = {
            f"torch.ops.{name.replace('::', '.')}{overload}"
            for name in custom_operators
            for overload in ("", ".default")
        }
        self.names: dict[str, Any] = {name: Ref(index) for index, name in enumerate(arguments)}
        self.ops: list[Op] = []
        self.num_inputs = len(arguments)
        self._by_type: dict[type[ast.expr], Callable[[Any, int], Any]] = {
            ast.Name: self._name,
            ast.Constant: self._constant,
            ast.Call: self._call,
            ast.Attribute: self._attribute,
            ast.Tuple: self._tuple,
            ast.List: self._list,
            ast.Dict: self._dict,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._binary,
            ast.Compare: self._compare,
            ast.Subscript: self._subscript,
            ast.Slice: self._slice,
        }

    def lower(self, node: ast.expr, depth: int = 0) -> Any:
        """Convert an expression to an argument, appending its operators to `ops`.

        Raises:
            SourceError: If the expression cannot be part of a straight-line graph.
            UnknownOperatorError: If it calls an operator that is not in the table.
        """
        method = self._by_type.get(type(node))
        if method is None:
            self.fail(node, f"`{type(node).__name__}` is not part of a straight-line graph")
        if depth > MAX_DEPTH:
            self.fail(node, f"the expression nests deeper than {MAX_DEPTH} levels")
        return method(node, depth + 1)

    def emit(
        self,
        target: str,
        args: tuple[Any, ...],
        kwargs: tuple[tuple[str, Any], ...] = (),
    ) -> Ref:
        """Append a call of the operator with canonical name `target`; return its value."""
        self.ops.append(Op(target, args, kwargs))
        return Ref(self.num_inputs + len(self.ops) - 1)

    def fail(self, node: ast.AST, problem: str) -> NoReturn:
        """Raise an error about a problem at a node's position in the file."""
        raise source_error(self.file, getattr(node, "lineno", 0), problem)

    def find_operator(self, node: ast.AST, name: str, kind: str) -> str:
        """Return the canonical name of an operator, checking its kind."""
        if name in self._customs and kind != "attribute":
            return name
        try:
            operator = lookup(name)
        except UnknownOperatorError as error:
            raise UnknownOperatorError(
                f"`{self.file}`, line {getattr(node, 'lineno', 0)}: `{name[:120]}` is not in the "
                f"operator table of torch. {UNKNOWN_ADVICE}"
            ) from error
        if (operator.kind == "attribute") != (kind == "attribute"):
            form = "read, not called" if operator.kind == "attribute" else "called"
            self.fail(node, f"`{name[:120]}` must be {form}")
        return operator.name

    def _name(self, node: ast.Name, _depth: int) -> Any:
        name = node.id
        if name in self.names:
            value = self.names[name]
            if value is UNUSABLE:
                self.fail(node, f"`{name[:80]}` is a context of autograd, which is used")
            return value
        if name in _LITERALS:
            return _LITERALS[name]
        self.fail(node, f"the name `{name[:80]}` has no value here")

    def _constant(self, node: ast.Constant, _depth: int) -> Any:
        value = node.value
        if isinstance(value, bytes):
            self.fail(node, "bytes are not part of a graph")
        if type(value) is int and value > INT64_MAX:
            self.fail(node, "an integer goes beyond 64 bits")
        return value

    def _tuple(self, node: ast.Tuple, depth: int) -> tuple[Any, ...]:
        return tuple([self.lower(item, depth) for item in node.elts])

    def _list(self, node: ast.List, depth: int) -> ListArg:
        return ListArg(tuple([self.lower(item, depth) for item in node.elts]))

    def _dict(self, node: ast.Dict, depth: int) -> DictArg:
        items = []
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or type(key.value) is not str:
                self.fail(node, "a dictionary has a key that is not text")
            items.append((key.value, self.lower(value, depth)))
        return DictArg(tuple(items))

    def _slice(self, node: ast.Slice, depth: int) -> SliceArg:
        parts = (node.lower, node.upper, node.step)
        return SliceArg(*(None if part is None else self.lower(part, depth) for part in parts))

    def _unary(self, node: ast.UnaryOp, depth: int) -> Any:
        operand = node.operand
        if isinstance(node.op, ast.USub):
            if isinstance(operand, ast.Constant) and type(operand.value) is int:
                if operand.value > INT64_MAX + 1:
                    self.fail(node, "an integer goes beyond 64 bits")
                return -operand.value
            value = self.lower(operand, depth)
            if type(value) in (float, complex):
                # Keep the singleton NaN, so that equal samples compare equal.
                return value if value != value else -value
        else:
            value = self.lower(operand, depth)
        if not isinstance(value, Ref):
            self.fail(node, "arithmetic on literals is not part of a graph")
        return self.emit(f"operator.{UNARY[type(node.op)]}", (value,))

    def _binary(self, node: ast.BinOp, depth: int) -> Any:
        left, right = self.lower(node.left, depth), self.lower(node.right, depth)
        if not isinstance(left, Ref) and not isinstance(right, Ref):
            if type(left) in (int, float) and type(right) is complex:
                # Python's AST represents the literal 1+2j as a sum.
                return left + right if isinstance(node.op, ast.Add) else left - right
            self.fail(node, "arithmetic on literals is not part of a graph")
        return self.emit(f"operator.{BINARY[type(node.op)]}", (left, right))

    def _compare(self, node: ast.Compare, depth: int) -> Ref:
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARE:
            self.fail(node, "a comparison is chained or is not one of == != < <= > >=")
        left, right = self.lower(node.left, depth), self.lower(node.comparators[0], depth)
        if not isinstance(left, Ref) and not isinstance(right, Ref):
            self.fail(node, "a comparison of literals is not part of a graph")
        return self.emit(f"operator.{COMPARE[type(node.ops[0])]}", (left, right))

    def _subscript(self, node: ast.Subscript, depth: int) -> Ref:
        base = self._value(node.value, depth)
        return self.emit("operator.getitem", (base, self.lower(node.slice, depth)))

    def _attribute(self, node: ast.Attribute, depth: int) -> Any:
        name = self._dotted(node)
        if name is not None:
            if name in CONSTANTS:
                return CONSTANTS[name]
            module, _, last = name.partition(".")
            if module in ("torch", "math") and last in ("inf", "nan"):
                return _LITERALS[last]
            self.fail(node, f"`{name[:120]}` is not a constant that a graph may hold")
        base = self._value(node.value, depth)
        target = self.find_operator(node, f"torch.Tensor.{node.attr}", "attribute")
        return self.emit(target, (base,))

    def _call(self, node: ast.Call, depth: int) -> Any:
        func = node.func
        if isinstance(func, ast.Name):
            if func.id in self.names or func.id not in _CONSTRUCTORS:
                return self._call_builtin(node, func.id, depth)
            return self._construct(node, func.id, depth)
        if not isinstance(func, ast.Attribute):
            self.fail(node, "only named functions and methods of values can be called")
        name = self._dotted(func)
        if name is None:
            receiver: tuple[Any, ...] = (self._value(func.value, depth),)
            name, kind = f"torch.Tensor.{func.attr}", "method"
        elif name == "torch.device":
            return self._construct(node, "device", depth)
        elif name == "torch.Size":
            return self._size(node, depth)
        else:
            receiver, kind = (), "function"
        target = self.find_operator(node, name, kind)
        args = receiver + tuple([self.lower(argument, depth) for argument in node.args])
        return self.emit(target, args, self._keywords(node, depth))

    def is_context(self, node: ast.expr) -> bool:
        """Return whether an expression creates an autograd context that dynamo left."""
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not node.args
            and not node.keywords
            and self._dotted(node.func) == _CONTEXT
        )

    def _size(self, node: ast.Call, depth: int) -> tuple[Any, ...]:
        """Return the tuple for `torch.Size([2, 3])`, the printed form of a size."""
        sizes = self.lower(node.args[0], depth) if len(node.args) == 1 else None
        if isinstance(sizes, ListArg):
            sizes = sizes.items
        if not isinstance(sizes, tuple) or node.keywords:
            self.fail(node, "`torch.Size` is called with something other than a list of sizes")
        return sizes

    def _call_builtin(self, node: ast.Call, name: str, depth: int) -> Ref:
        if name in self.names:
            self.fail(node, f"the value `{name[:80]}` is called")
        target = self.find_operator(node, f"builtins.{name}", "function")
        args = tuple([self.lower(argument, depth) for argument in node.args])
        return self.emit(target, args, self._keywords(node, depth))

    def _keywords(self, node: ast.Call, depth: int) -> tuple[tuple[str, Any], ...]:
        keywords = []
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(node, "keywords are unpacked from a dictionary")
            keywords.append((keyword.arg, self.lower(keyword.value, depth)))
        return tuple(keywords)

    def _construct(self, node: ast.Call, name: str, depth: int) -> Any:
        args = [self.lower(argument, depth) for argument in node.args]
        keywords = dict(self._keywords(node, depth))
        if name == "device":
            return self._device(node, args, keywords)
        if name == "slice" and 1 <= len(args) <= 3 and not keywords:
            if len(args) == 1:
                return SliceArg(None, args[0], None)
            return SliceArg(args[0], args[1], args[2] if len(args) == 3 else None)
        if name == "float" and len(args) == 1 and type(args[0]) is str and args[0] in _FLOATS:
            return _FLOATS[args[0]]
        if name == "complex" and [type(item) for item in args] == [float, float]:
            return complex(*args)
        if name in ("float", "complex"):
            target = self.find_operator(node, f"builtins.{name}", "function")
            return self.emit(target, tuple(args), tuple(keywords.items()))
        self.fail(node, f"`{name}` is called with arguments that a graph cannot hold")

    def _device(self, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> Named:
        parts = dict(zip(("type", "index"), args, strict=False)) | keywords
        kind, index = parts.get("type"), parts.get("index")
        if len(args) <= 2 and set(parts) <= {"type", "index"} and type(kind) is str:
            name = kind if index is None else f"{kind}:{index}"
            if is_device_name(name):
                return Named("device", name)
        self.fail(node, "`device` is called with arguments that name no device")

    def _value(self, node: ast.expr, depth: int) -> Ref:
        """Lower the receiver of a method, attribute or subscript, which must not be a literal."""
        value = self.lower(node, depth)
        if not isinstance(value, Ref):
            self.fail(node, "a literal is used where a value of the graph is needed")
        return value

    def _dotted(self, node: ast.Attribute) -> str | None:
        """Return a dotted name that begins with a module, or None for an attribute of a value."""
        parts = [node.attr]
        current = node.value
        while isinstance(current, ast.Attribute):
            parts.append(current.attr)
            current = current.value
        if not isinstance(current, ast.Name) or current.id in self.names:
            return None
        if current.id not in ROOTS:
            return None
        parts.append(current.id)
        return ".".join(reversed(parts))
