"""Writes the operators of a paddle sample, one after the other, for the rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...frameworks.paddle.operators import CORE, GETITEM
from ...sample import Op, Value
from ...sample.arguments import Arg, ListArg, Named, Ref
from ...sample.symbols import Dim
from .handles import Number, RefusedError, Shape, Tensor

EXPECTED = Named("place", "expected")


class Writer:
    """The operators written so far; rules add to them and get handles of what they give.

    `target` is the name of the operator that is being translated, `module` where it stands, and
    `result` what the torch sample records of it: one value per tensor that it gives. `symbols` maps
    the name of a symbol to the input that holds its size.
    """

    def __init__(self, num_inputs: int, symbols: dict[str, Ref]) -> None:
        self.num_inputs = num_inputs
        self.symbols = symbols
        self.ops: list[Op] = []
        self.target = self.module = ""
        self.result: tuple[Value, ...] = ()

    @property
    def dtype(self) -> str:
        """The dtype that torch gives its result."""
        return self.result[0].dtype or "float32" if self.result else "float32"

    @property
    def shape(self) -> Shape:
        """The shape that torch gives its result.

        Raises:
            RefusedError: it is not recorded.
        """
        if not self.result or self.result[0].shape is None:
            raise RefusedError("the shape of its result is not recorded")
        return self.result[0].shape

    def emit(self, name: str, *args: Any, dtype: str, shape: Sequence[Dim]) -> Tensor:
        """Add the call of an operator of paddle's core that gives one tensor."""
        shape = tuple(shape)
        ref = self._add(CORE + name, args, (Value(dtype, shape),))
        return Tensor(ref, dtype, shape)

    def emit_first(
        self, name: str, *args: Any, dtype: str, shape: Sequence[Dim], number: int
    ) -> Tensor:
        """Add a call that gives `number` tensors, of which only the first is wanted."""
        first = Value(dtype, tuple(shape))
        whole = self._add(CORE + name, args, (first, *[Value()] * (number - 1)))
        return Tensor(self._add(GETITEM, (whole, 0), (first,)), dtype, tuple(shape))

    def emit_many(
        self, name: str, *args: Any, values: Iterable[tuple[str, Sequence[Dim]]]
    ) -> tuple[Tensor, ...]:
        """Add a call that gives several tensors, with the dtype and shape of each."""
        described = [Value(dtype, tuple(shape)) for dtype, shape in values]
        whole = self._add(CORE + name, args, tuple(described))
        return tuple(self.item(whole, index, value) for index, value in enumerate(described))

    def emit_nested(self, name: str, *args: Any, results: tuple[Value, ...]) -> Ref:
        """Add a call whose results are taken apart with `item`."""
        return self._add(CORE + name, args, results)

    def item(self, whole: Ref, index: int, value: Value) -> Tensor:
        """Add the taking of one result; of a list of tensors among results, leave `value` empty."""
        ref = self._add(GETITEM, (whole, index), (value,))
        return Tensor(ref, value.dtype or "", value.shape or ())

    def compute(self, target: str, kind: type[Any], *args: Any) -> Number:
        """Add an operator of Python on numbers."""
        return Number(self._add(target, args, ()), kind)

    def call(self, target: str, *args: Any, dtype: str, shape: Sequence[Dim]) -> Tensor:
        """Add the call of a public function of paddle that gives one tensor."""
        ref = self._add(target, args, (Value(dtype, tuple(shape)),))
        return Tensor(ref, dtype, tuple(shape))

    def _add(self, target: str, args: tuple[Any, ...], results: tuple[Value, ...]) -> Ref:
        self.ops.append(Op(target, tuple(map(plain, args)), (), results, self.module))
        return Ref(self.num_inputs + len(self.ops) - 1)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        """Return a tensor in another dtype, or itself."""
        if x.dtype == dtype:
            return x
        return self.emit("cast", x, Named("dtype", dtype), dtype=dtype, shape=x.shape)

    def full(self, shape: Sequence[Any], value: Any, dtype: str) -> Tensor:
        """Return a tensor that holds one number; sizes are integers, expressions or numbers."""
        sizes = [self.size(each) for each in shape]
        known = tuple(each if isinstance(each, int | str) else 0 for each in shape)
        return self.emit(
            "full", sizes, value, Named("dtype", dtype), EXPECTED, dtype=dtype, shape=known
        )

    def as_tensor(self, operand: Any, dtype: str) -> Tensor:
        """Return a tensor or number as a tensor of a dtype."""
        if isinstance(operand, Tensor):
            return self.cast(operand, dtype)
        return self.full((), operand, dtype)

    def reshape(self, x: Tensor, shape: Sequence[Dim]) -> Tensor:
        """Return a tensor in another shape with as many elements."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        sizes: list[Any] = list(shape)
        unknown = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
        if len(unknown) == 1 and 0 not in shape:
            sizes[unknown[0]] = -1
        else:
            sizes = [self.size(each) for each in shape]
        return self.emit("reshape", x, sizes, dtype=x.dtype, shape=shape)

    def permute(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Return a tensor with its dimensions in another order."""
        if list(order) == list(range(x.ndim)):
            return x
        shape = tuple(x.shape[axis] for axis in order)
        return self.emit("transpose", x, list(order), dtype=x.dtype, shape=shape)

    def swap(self, x: Tensor, first: int, second: int) -> Tensor:
        """Return a tensor with two of its dimensions swapped."""
        order = list(range(x.ndim))
        first, second = x.axis(first), x.axis(second)
        order[first], order[second] = second, first
        return self.permute(x, order)

    def expand(self, x: Tensor, shape: Sequence[Dim]) -> Tensor:
        """Return a tensor broadcast to a shape."""
        if tuple(shape) == x.shape:
            return x
        offset = len(shape) - x.ndim
        sizes = [
            -1 if axis >= offset and x.shape[axis - offset] == size else self.size(size)
            for axis, size in enumerate(shape)
        ]
        return self.emit("expand", x, sizes, dtype=x.dtype, shape=shape)

    def scale(self, x: Tensor, factor: Any, offset: Any = 0.0) -> Tensor:
        """Return `x * factor + offset`."""
        return self.emit("scale", x, factor, offset, True, dtype=x.dtype, shape=x.shape)

    def binary(self, name: str, x: Tensor, y: Tensor, dtype: str | None = None) -> Tensor:
        """Return an operator of two tensors with broadcasting."""
        return self.emit(name, x, y, dtype=dtype or x.dtype, shape=broadcast(x.shape, y.shape))

    def matmul(self, x: Tensor, y: Tensor, *, is_transposed: bool = False) -> Tensor:
        """Return the product of (stacks of) matrices; `y` may be given transposed."""
        if x.ndim == 1 or y.ndim == 1:
            last: Shape = () if x.ndim == y.ndim == 1 else (x.shape[:-1] if y.ndim == 1 else ())
            if not last and x.ndim == 1 and y.ndim > 1:
                last = (*y.shape[:-2], y.shape[-1])
        else:
            batch = broadcast(x.shape[:-2], y.shape[:-2])
            last = (*batch, x.shape[-2], y.shape[-2 if is_transposed else -1])
        return self.emit("matmul", x, y, False, is_transposed, dtype=x.dtype, shape=last)

    def size(self, size: Any) -> Any:
        """Return a size as an argument: an integer, or the number that holds it as the graph runs.

        Raises:
            RefusedError: no input of the graph holds the symbol.
        """
        if not isinstance(size, str):
            return size
        if size in self.symbols:
            return Number(self.symbols[size], int)
        raise RefusedError(f"the size `{size}` is not an input of the graph")


def plain(arg: Any) -> Arg:
    """Return an argument of an operator with references in the place of handles."""
    if isinstance(arg, Tensor | Number):
        return arg.ref
    if isinstance(arg, list):
        return ListArg(tuple(map(plain, arg)))
    if isinstance(arg, tuple):
        return tuple(map(plain, arg))
    return arg


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape to which shapes are broadcast together.

    >>> broadcast((2, 1), (3,)), broadcast(("s0", 1), (1, 4))
    ((2, 3), ('s0', 4))
    """
    rank = max(map(len, shapes), default=0)
    found: list[Dim] = []
    for axis in range(rank):
        sizes = [shape[axis - rank] for shape in shapes if len(shape) >= rank - axis]
        found.append(next((size for size in sizes if size != 1), 1))
    return tuple(found)


def count(shape: Sequence[Dim]) -> int:
    """Return the number of elements of a known shape.

    Raises:
        RefusedError: a size is an expression over the symbols.
    """
    if not all(isinstance(size, int) for size in shape):
        raise RefusedError("the number of elements has to be known")
    return math.prod(size for size in shape if isinstance(size, int))
