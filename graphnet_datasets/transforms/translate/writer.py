"""Writer of the operators of a paddle sample, used by the rules."""

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
    """The operators written so far; rules append operators and receive handles of their results.

    `target` is the name of the translated operator, `module` its module path, and `result` the
    recorded results of the torch sample, one value per tensor. `symbols` maps the name of a symbol
    to the input with its size.
    """

    def __init__(self, num_inputs: int, symbols: dict[str, Ref]) -> None:
        self.num_inputs = num_inputs
        self.symbols = symbols
        self.ops: list[Op] = []
        self.target = self.module = ""
        self.result: tuple[Value, ...] = ()

    @property
    def dtype(self) -> str:
        """Recorded dtype of the torch result."""
        return self.result[0].dtype or "float32" if self.result else "float32"

    @property
    def shape(self) -> Shape:
        """Recorded shape of the torch result.

        Raises:
            RefusedError: the shape is not recorded.
        """
        if not self.result or self.result[0].shape is None:
            raise RefusedError("The shape of its result is not recorded.")
        return self.result[0].shape

    def emit(self, name: str, *args: Any, dtype: str, shape: Sequence[Dim]) -> Tensor:
        """Append a call of a paddle core operator that returns one tensor."""
        shape = tuple(shape)
        ref = self._add(CORE + name, args, (Value(dtype, shape),))
        return Tensor(ref, dtype, shape)

    def emit_first(
        self, name: str, *args: Any, dtype: str, shape: Sequence[Dim], number: int
    ) -> Tensor:
        """Append a call that returns `number` tensors, of which only the first is used."""
        first = Value(dtype, tuple(shape))
        whole = self._add(CORE + name, args, (first, *[Value()] * (number - 1)))
        return Tensor(self._add(GETITEM, (whole, 0), (first,)), dtype, tuple(shape))

    def emit_many(
        self, name: str, *args: Any, values: Iterable[tuple[str, Sequence[Dim]]]
    ) -> tuple[Tensor, ...]:
        """Append a call that returns several tensors with the given dtypes and shapes."""
        outputs = [Value(dtype, tuple(shape)) for dtype, shape in values]
        whole = self._add(CORE + name, args, tuple(outputs))
        return tuple(self.item(whole, index, value) for index, value in enumerate(outputs))

    def emit_nested(self, name: str, *args: Any, results: tuple[Value, ...]) -> Ref:
        """Append a call whose results are unpacked with `item`."""
        return self._add(CORE + name, args, results)

    def item(self, whole: Ref, index: int, value: Value) -> Tensor:
        """Append the unpacking of one result; `value` is empty for a list of tensors."""
        ref = self._add(GETITEM, (whole, index), (value,))
        return Tensor(ref, value.dtype or "", value.shape or ())

    def compute(self, target: str, kind: type[Any], *args: Any) -> Number:
        """Append a Python operator on numbers."""
        return Number(self._add(target, args, ()), kind)

    def call(self, target: str, *args: Any, dtype: str, shape: Sequence[Dim]) -> Tensor:
        """Append a call of a public paddle function that returns one tensor."""
        ref = self._add(target, args, (Value(dtype, tuple(shape)),))
        return Tensor(ref, dtype, tuple(shape))

    def _add(self, target: str, args: tuple[Any, ...], results: tuple[Value, ...]) -> Ref:
        self.ops.append(Op(target, tuple(map(plain, args)), (), results, self.module))
        return Ref(self.num_inputs + len(self.ops) - 1)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        """Return a tensor converted to a dtype."""
        if x.dtype == dtype:
            return x
        return self.emit("cast", x, Named("dtype", dtype), dtype=dtype, shape=x.shape)

    def full(self, shape: Sequence[Any], value: Any, dtype: str) -> Tensor:
        """Return a tensor filled with one number; sizes are integers, expressions or numbers."""
        sizes = [self.size(size) for size in shape]
        recorded = tuple(size if isinstance(size, int | str) else 0 for size in shape)
        return self.emit(
            "full", sizes, value, Named("dtype", dtype), EXPECTED, dtype=dtype, shape=recorded
        )

    def as_tensor(self, operand: Any, dtype: str) -> Tensor:
        """Return a tensor or number as a tensor of the given dtype."""
        if isinstance(operand, Tensor):
            return self.cast(operand, dtype)
        return self.full((), operand, dtype)

    def reshape(self, x: Tensor, shape: Sequence[Dim]) -> Tensor:
        """Return a tensor reshaped to a shape of equal size."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        sizes: list[Any] = list(shape)
        unknown = [axis for axis, size in enumerate(shape) if not isinstance(size, int)]
        if len(unknown) == 1 and 0 not in shape:
            sizes[unknown[0]] = -1
        else:
            sizes = [self.size(size) for size in shape]
        return self.emit("reshape", x, sizes, dtype=x.dtype, shape=shape)

    def permute(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Return a tensor with permuted dimensions."""
        if list(order) == list(range(x.ndim)):
            return x
        shape = tuple(x.shape[axis] for axis in order)
        return self.emit("transpose", x, list(order), dtype=x.dtype, shape=shape)

    def swap(self, x: Tensor, first: int, second: int) -> Tensor:
        """Return a tensor with two dimensions swapped."""
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
        """Append a binary operator on tensors, with broadcasting."""
        return self.emit(name, x, y, dtype=dtype or x.dtype, shape=broadcast(x.shape, y.shape))

    def matmul(self, x: Tensor, y: Tensor, *, is_transposed: bool = False) -> Tensor:
        """Return the product of (batches of) matrices; `y` may be passed transposed."""
        if x.ndim == 1 or y.ndim == 1:
            last: Shape = () if x.ndim == y.ndim == 1 else (x.shape[:-1] if y.ndim == 1 else ())
            if not last and x.ndim == 1 and y.ndim > 1:
                last = (*y.shape[:-2], y.shape[-1])
        else:
            batch = broadcast(x.shape[:-2], y.shape[:-2])
            last = (*batch, x.shape[-2], y.shape[-2 if is_transposed else -1])
        return self.emit("matmul", x, y, False, is_transposed, dtype=x.dtype, shape=last)

    def size(self, size: Any) -> Any:
        """Return a size as an argument: an integer, or the number that contains it at run time.

        Raises:
            RefusedError: the symbol is not an input of the graph.
        """
        if not isinstance(size, str):
            return size
        if size in self.symbols:
            return Number(self.symbols[size], int)
        raise RefusedError(f"The size `{size}` is not an input of the graph.")


def plain(arg: Any) -> Arg:
    """Replace the handles in an argument by references."""
    if isinstance(arg, Tensor | Number):
        return arg.ref
    if isinstance(arg, list):
        return ListArg(tuple(map(plain, arg)))
    if isinstance(arg, tuple):
        return tuple(map(plain, arg))
    return arg


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape to which several shapes are broadcast.

    >>> broadcast((2, 1), (3,)), broadcast(("s0", 1), (1, 4))
    ((2, 3), ('s0', 4))
    """
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        sizes = [shape[axis - rank] for shape in shapes if len(shape) >= rank - axis]
        result.append(next((size for size in sizes if size != 1), 1))
    return tuple(result)


def count(shape: Sequence[Dim]) -> int:
    """Return the number of elements of a known shape.

    Raises:
        RefusedError: a size is an expression over the symbols.
    """
    if not all(isinstance(size, int) for size in shape):
        raise RefusedError("The number of elements must be known.")
    return math.prod(size for size in shape if isinstance(size, int))
