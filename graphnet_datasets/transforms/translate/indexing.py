"""Rules of operators that pick elements."""
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
        raise RefusedError("what it takes an item of is neither a tensor nor a tuple")
    given = list(index) if isinstance(index, tuple) else [index]
    parts = [_listed(w, each) if isinstance(each, list) else each for each in given]
    parts = _without_ellipsis(input, parts)
    x, kept = _basic(w, input, parts)
    if any(isinstance(each, Tensor) for each in kept):
        return _advanced(w, x, kept)
    return x


def _listed(w: Writer, places: list[Any]) -> Tensor:
    if not all(type(each) is int for each in places):
        raise RefusedError("it is indexed with a list of something else than integers")
    dtype = Named("dtype", "int64")
    return w.call("paddle.to_tensor", places, dtype, dtype="int64", shape=(len(places),))


def _without_ellipsis(x: Tensor, parts: list[Any]) -> list[Any]:
    taken = sum(0 if each is None or each is Ellipsis else _dims_of(each) for each in parts)
    everything = [slice(None)] * (x.ndim - taken)
    for at, each in enumerate(parts):
        if each is Ellipsis:
            return parts[:at] + everything + parts[at + 1 :]
    return parts + everything


def _dims_of(part: Any) -> int:
    return part.ndim if isinstance(part, Tensor) and part.dtype == "bool" else 1


def _basic(w: Writer, x: Tensor, parts: list[Any]) -> tuple[Tensor, list[Any]]:
    """Apply integers, slices and None; return what is left, and per dimension a tensor or None."""
    axes: list[int] = []
    starts: list[Any] = []
    ends: list[Any] = []
    steps: list[int] = []
    dropped: list[int] = []
    added: list[int] = []
    kept: list[Any] = []
    axis = 0
    for part in parts:
        if part is None:
            added.append(len(kept))
            kept.append(None)
            continue
        if isinstance(part, Tensor):
            kept.append(part)
        elif isinstance(part, slice):
            start, stop, step = part.start, part.stop, part.step or 1
            if not isinstance(step, int) or step < 1:
                raise RefusedError("its step has to be a positive integer that is known")
            if start not in (None, 0) or stop is not None or step != 1:
                axes.append(axis)
                starts.append(0 if start is None else start)
                ends.append(_END if stop is None else stop)
                steps.append(step)
            kept.append(None)
        elif isinstance(part, int | Number) and not isinstance(part, bool):
            axes.append(axis)
            starts.append(part)
            ends.append(_after(part, w))
            steps.append(1)
            dropped.append(axis)
        else:
            raise RefusedError(f"it is indexed with a `{type(part).__name__}`")
        axis += 1
    x = _slice(w, x, axes, starts, ends, steps, dropped)
    if added:
        has_tensors = any(isinstance(each, Tensor) for each in kept)
        sizes = iter(x.shape)
        shape = tuple(1 if at in added else next(sizes) for at in range(len(kept)))
        shape = shape if has_tensors else w.shape
        x = w.emit("unsqueeze", x, added, dtype=x.dtype, shape=shape)
    return x, kept


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
        if all(isinstance(each, int) for each in (size, start, end)):
            shape[axis] = len(range(size)[start:end:step])
        else:
            shape[axis] = "unknown"
    final = [size for axis, size in enumerate(shape) if axis not in dropped]
    if "unknown" in final:
        if len(final) != len(w.shape):
            raise RefusedError("it slices and indexes a dimension whose size is symbolic")
        final = list(w.shape)
    if all(step == 1 for step in steps):
        flags = [1] * len(axes)
        return w.emit("slice", x, axes, starts, ends, flags, dropped, dtype=x.dtype, shape=final)
    wide = w.emit("strided_slice", x, axes, starts, ends, steps, dtype=x.dtype, shape=shape)
    return w.reshape(wide, final) if dropped else wide


def _advanced(w: Writer, x: Tensor, kept: list[Any]) -> Tensor:
    """Pick by tensors of integers: bring their dimensions to the front, gather, put them back."""
    places = [at for at, each in enumerate(kept) if isinstance(each, Tensor)]
    indices = [kept[at] for at in places]
    if any(each.dtype == "bool" for each in indices):
        if len(kept) == 1 and indices[0].shape == x.shape:
            return w.emit("masked_select", x, indices[0], dtype=x.dtype, shape=w.shape)
        raise RefusedError("it is indexed with a mask of some of its dimensions")
    shape = broadcast(*(each.shape for each in indices))
    rest = [at for at in range(x.ndim) if at not in places]
    front = w.permute(x, [*places, *rest])
    columns = [w.expand(w.cast(each, "int64"), shape) for each in indices]
    index = w.emit("stack", columns, len(shape), dtype="int64", shape=(*shape, len(columns)))
    tail = tuple(front.shape[len(places) :])
    found = w.emit("gather_nd", front, index, dtype=x.dtype, shape=(*shape, *tail))
    is_together = places == list(range(places[0], places[-1] + 1))
    if not is_together or places[0] == 0:
        return found
    before, width = places[0], len(shape)
    order = [*range(width, width + before), *range(width)]
    return w.permute(found, [*order, *range(width + before, found.ndim)])


@rule("select")
def select(w: Writer, input: Tensor, dim: int, index: Any) -> Tensor:
    axis = input.axis(dim)
    return getitem(w, input, (*[slice(None)] * axis, index))


@rule("narrow")
def narrow(w: Writer, input: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    axis = input.axis(dim)
    if not isinstance(start, int) or not isinstance(length, int):
        raise RefusedError("where it starts and ends has to be known")
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
    for other in range(x.ndim):  # paddle broadcasts where torch takes the first elements
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
        raise RefusedError("it reduces what it scatters")
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
        raise RefusedError("it changes its weight (`max_norm`)")
    shape = (*input.shape, weight.shape[1])  # paddle would give zeros for the padding's index
    return w.emit("embedding", input, weight, -1, False, dtype=weight.dtype, shape=shape)


@rule("diff")
def diff(
    w: Writer, input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None
) -> Tensor:
    if n != 1:
        raise RefusedError("it takes differences more than once")
    axis, x = input.axis(dim), input
    parts = [each for each in (prepend, input, append) if each is not None]
    if len(parts) > 1:
        total = functools.reduce(_plus, (each.shape[axis] for each in parts))
        shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
        x = w.emit("concat", parts, axis, dtype=x.dtype, shape=shape)
    ahead = _slice(w, x, [axis], [1], [_END], [1], [])
    behind = _slice(w, x, [axis], [0], [-1], [1], [])
    return arithmetic(w, "subtract", ahead, behind)


def _plus(left: Dim, right: Dim) -> Dim:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return f"{left} + {right}"
