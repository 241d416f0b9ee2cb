"""Rules for operators that select elements."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

import functools
from typing import Any

from ...sample.arguments import Named
from ...sample.symbols import Dim
from .elementwise import arithmetic
from .handles import Number, RefusedError, Tensor
from .registry import rule
from .writer import Writer, broadcast

_END = 2**31 - 1


@rule("operator.getitem", "torch.Tensor.__getitem__")
def getitem(w: Writer, input: Any, index: Any) -> Any:
    if not isinstance(input, Tensor):
        if isinstance(input, list | tuple) and isinstance(index, int | slice):
            return input[index]
        raise RefusedError("Its operand is neither a tensor nor a tuple.")
    entries = list(index) if isinstance(index, tuple) else [index]
    parts = [_listed(w, entry) if isinstance(entry, list) else entry for entry in entries]
    parts = _without_ellipsis(input, parts)
    x, remaining = _basic(w, input, parts)
    if any(isinstance(entry, Tensor) for entry in remaining):
        return _advanced(w, x, remaining)
    return x


def _listed(w: Writer, places: list[Any]) -> Tensor:
    if not all(type(index) is int for index in places):
        raise RefusedError("Only lists of integers are supported as indices.")
    dtype = Named("dtype", "int64")
    return w.call("paddle.to_tensor", places, dtype, dtype="int64", shape=(len(places),))


def _without_ellipsis(x: Tensor, parts: list[Any]) -> list[Any]:
    num_indexed = sum(0 if part is None or part is Ellipsis else _dims_of(part) for part in parts)
    everything = [slice(None)] * (x.ndim - num_indexed)
    for at, part in enumerate(parts):
        if part is Ellipsis:
            return parts[:at] + everything + parts[at + 1 :]
    return parts + everything


def _dims_of(part: Any) -> int:
    return part.ndim if isinstance(part, Tensor) and part.dtype == "bool" else 1


def _basic(w: Writer, x: Tensor, parts: list[Any]) -> tuple[Tensor, list[Any]]:
    """Apply integers, slices and None; return the tensor, and a tensor or None per dimension."""
    axes: list[int] = []
    starts: list[Any] = []
    ends: list[Any] = []
    steps: list[int] = []
    dropped: list[int] = []
    added: list[int] = []
    remaining: list[Any] = []
    axis = 0
    for part in parts:
        if part is None:
            added.append(len(remaining))
            remaining.append(None)
            continue
        if isinstance(part, Tensor):
            remaining.append(part)
        elif isinstance(part, slice):
            start, stop, step = part.start, part.stop, part.step or 1
            if not isinstance(step, int) or step < 1:
                raise RefusedError("Its step must be a known positive integer.")
            if start not in (None, 0) or stop is not None or step != 1:
                axes.append(axis)
                starts.append(0 if start is None else start)
                ends.append(_END if stop is None else stop)
                steps.append(step)
            remaining.append(None)
        elif isinstance(part, int | Number) and not isinstance(part, bool):
            axes.append(axis)
            starts.append(part)
            ends.append(_after(part, w))
            steps.append(1)
            dropped.append(axis)
        else:
            raise RefusedError(f"An index of type `{type(part).__name__}` is not supported.")
        axis += 1
    x = _slice(w, x, axes, starts, ends, steps, dropped)
    if added:
        has_tensors = any(isinstance(entry, Tensor) for entry in remaining)
        sizes = iter(x.shape)
        shape = tuple(1 if at in added else next(sizes) for at in range(len(remaining)))
        shape = shape if has_tensors else w.shape
        x = w.emit("unsqueeze", x, added, dtype=x.dtype, shape=shape)
    return x, remaining


def _after(part: Any, w: Writer) -> Any:
    if isinstance(part, Number):
        return w.compute("operator.add", int, part, 1)
    return _END if part == -1 else part + 1


def _slice(
    w: Writer,
    x: Tensor,
    axes: list[int],
    starts: list[Any],
    ends: list[Any],
    steps: list[int],
    dropped: list[int],
) -> Tensor:
    if not axes:
        return x
    shape: list[Any] = list(x.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = shape[axis]
        if all(isinstance(bound, int) for bound in (size, start, end)):
            shape[axis] = len(range(size)[start:end:step])
        else:
            shape[axis] = "unknown"
    final = [size for axis, size in enumerate(shape) if axis not in dropped]
    if "unknown" in final:
        if len(final) != len(w.shape):
            raise RefusedError(
                "Slicing of a symbolic dimension beside another index is not supported."
            )
        final = list(w.shape)
    if all(step == 1 for step in steps):
        flags = [1] * len(axes)
        return w.emit("slice", x, axes, starts, ends, flags, dropped, dtype=x.dtype, shape=final)
    wide = w.emit("strided_slice", x, axes, starts, ends, steps, dtype=x.dtype, shape=shape)
    return w.reshape(wide, final) if dropped else wide


def _advanced(w: Writer, x: Tensor, entries: list[Any]) -> Tensor:
    """Index with integer tensors: move their dimensions to the front, gather, and move back."""
    places = [at for at, entry in enumerate(entries) if isinstance(entry, Tensor)]
    indices = [entries[at] for at in places]
    if any(index_tensor.dtype == "bool" for index_tensor in indices):
        if len(entries) == 1 and indices[0].shape == x.shape:
            return w.emit("masked_select", x, indices[0], dtype=x.dtype, shape=w.shape)
        raise RefusedError("A mask of some of its dimensions is not supported.")
    shape = broadcast(*(index_tensor.shape for index_tensor in indices))
    rest = [at for at in range(x.ndim) if at not in places]
    front = w.permute(x, [*places, *rest])
    columns = [w.expand(w.cast(index_tensor, "int64"), shape) for index_tensor in indices]
    index = w.emit("stack", columns, len(shape), dtype="int64", shape=(*shape, len(columns)))
    tail = tuple(front.shape[len(places) :])
    gathered = w.emit("gather_nd", front, index, dtype=x.dtype, shape=(*shape, *tail))
    is_together = places == list(range(places[0], places[-1] + 1))
    if not is_together or places[0] == 0:
        return gathered
    before, width = places[0], len(shape)
    order = [*range(width, width + before), *range(width)]
    return w.permute(gathered, [*order, *range(width + before, gathered.ndim)])


@rule("select")
def select(w: Writer, input: Tensor, dim: int, index: Any) -> Tensor:
    axis = input.axis(dim)
    return getitem(w, input, (*[slice(None)] * axis, index))


@rule("narrow")
def narrow(w: Writer, input: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    axis = input.axis(dim)
    if not isinstance(start, int) or not isinstance(length, int):
        raise RefusedError("Its start and length must be known.")
    return getitem(w, input, (*[slice(None)] * axis, slice(start, start + length)))


@rule("torch.ops.aten.slice", "torch.ops.aten.slice.Tensor")
def aten_slice(
    w: Writer, input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    end = None if isinstance(end, int) and end >= _END else end
    return getitem(w, input, (*[slice(None)] * input.axis(dim), slice(start, end, step)))


@rule("gather")
def gather(w: Writer, input: Tensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    x, axis = input, input.axis(dim)
    for other in range(x.ndim):  # paddle broadcasts; torch uses the first elements
        if other != axis and x.shape[other] != index.shape[other]:
            x = getitem(w, x, (*[slice(None)] * other, slice(0, index.static(other))))
    return w.emit("take_along_axis", x, index, axis, dtype=x.dtype, shape=index.shape)


@rule("take_along_dim")
def take_along_dim(w: Writer, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    axis = input.axis(dim)
    return w.emit("take_along_axis", input, indices, axis, dtype=input.dtype, shape=w.shape)


@rule("index_select")
def index_select(w: Writer, input: Tensor, dim: int, index: Tensor) -> Tensor:
    axis = input.axis(dim)
    return w.emit("index_select", input, index, axis, dtype=input.dtype, shape=w.shape)


@rule("scatter")
def scatter(
    w: Writer, input: Tensor, dim: int, index: Tensor, src: Any = None, **kw: Any
) -> Tensor:
    values = kw.get("value") if src is None else src
    if "reduce" in kw:
        raise RefusedError("Reductions are not supported.")
    if isinstance(values, Tensor):
        for axis, size in enumerate(index.shape):
            if values.shape[axis] != size:
                values = getitem(w, values, (*[slice(None)] * axis, slice(0, index.static(axis))))
    else:
        values = w.full(index.shape, values, input.dtype)
    return w.emit(
        "put_along_axis", input, index, values, input.axis(dim), "assign", True,
        dtype=input.dtype, shape=input.shape,
    )  # fmt: skip


@rule("scatter_add")
def scatter_add(w: Writer, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    values = src
    for axis in range(index.ndim):
        if values.shape[axis] != index.shape[axis]:
            values = getitem(w, values, (*[slice(None)] * axis, slice(0, index.static(axis))))
    return w.emit(
        "put_along_axis", input, index, values, input.axis(dim), "add", True,
        dtype=input.dtype, shape=input.shape,
    )  # fmt: skip


@rule("embedding")
def embedding(
    w: Writer,
    input: Tensor,
    weight: Tensor,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    if max_norm is not None:
        raise RefusedError("`max_norm` changes the weight.")
    shape = (*input.shape, weight.shape[1])  # paddle would return zeros for the padding index
    return w.emit("embedding", input, weight, -1, False, dtype=weight.dtype, shape=shape)


@rule("diff")
def diff(
    w: Writer, input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    if n != 1:
        raise RefusedError("Only first-order differences are supported.")
    axis, x = input.axis(dim), input
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1:
        total = functools.reduce(_plus, (part.shape[axis] for part in parts))
        shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
        x = w.emit("concat", parts, axis, dtype=x.dtype, shape=shape)
    ahead = _slice(w, x, [axis], [1], [_END], [1], [])
    behind = _slice(w, x, [axis], [0], [-1], [1], [])
    return arithmetic(w, "subtract", ahead, behind)


def _plus(left: Dim, right: Dim) -> Dim:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return f"{left} + {right}"
