"""Rules for operators that reduce, accumulate or sort."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

from typing import Any

from ...sample.arguments import Named
from .elementwise import arithmetic
from .handles import RefusedError, Tensor, category
from .registry import rule
from .writer import Writer, count


def axes_of(x: Tensor, dim: Any) -> list[int]:
    """Return the dimensions named by `dim`; None means all dimensions."""
    if dim is None:
        return list(range(x.ndim))
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [x.axis(axis) for axis in dims] or list(range(x.ndim))


def reduced(x: Tensor, axes: list[int], is_kept: bool) -> tuple[Any, ...]:
    """Return the shape after a reduction over the given dimensions."""
    sizes = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    return tuple(size for axis, size in enumerate(sizes) if is_kept or axis not in axes)


def mean_over(w: Writer, x: Tensor, axes: list[int], is_kept: bool) -> Tensor:
    """Return the mean over dimensions."""
    return w.emit("mean", x, axes, is_kept, dtype=x.dtype, shape=reduced(x, axes, is_kept))


@rule("mean")
def mean(
    w: Writer, input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x = w.cast(input, w.dtype)
    return mean_over(w, x, axes_of(x, dim), keepdim)


@rule("sum")
def sum_(
    w: Writer, input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x, axes = w.cast(input, w.dtype), axes_of(input, dim)
    shape = reduced(x, axes, keepdim)
    return w.emit("sum", x, axes, Named("dtype", w.dtype), keepdim, dtype=w.dtype, shape=shape)


@rule("prod")
def prod(
    w: Writer, input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    x, axes = w.cast(input, w.dtype), axes_of(input, dim)
    shape = reduced(x, axes, keepdim)
    return w.emit("prod", x, axes, keepdim, dim is None, dtype=w.dtype, shape=shape)


@rule("amax", "amin")
def extreme(w: Writer, input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    axes = axes_of(input, dim)
    name = {"amax": "max", "amin": "min"}[w.target.rpartition(".")[2]]
    shape = reduced(input, axes, keepdim)
    return w.emit(name, input, axes, keepdim, dtype=input.dtype, shape=shape)


@rule("max", "min")
def extreme_and_place(w: Writer, input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    name = w.target.rpartition(".")[2]
    if isinstance(dim, Tensor):
        return arithmetic(w, f"{name}imum", input, dim)
    if dim is None:
        return w.emit(name, input, axes_of(input, None), False, dtype=input.dtype, shape=())
    axes = axes_of(input, dim)
    shape = reduced(input, axes, keepdim)
    value = w.emit(name, input, axes, keepdim, dtype=input.dtype, shape=shape)
    return value, _place(w, f"arg{name}", input, axes[0], keepdim)


def _place(w: Writer, name: str, x: Tensor, axis: int, is_kept: bool) -> Tensor:
    """Return the first index of the largest or smallest element, by a stable sort."""
    is_largest = name == "argmax"
    order = in_order(w, x, axis, is_largest)[1]
    shape = reduced(x, [axis], False)
    first = w.emit("slice", order, [axis], [0], [1], [1], [axis], dtype="int64", shape=shape)
    return w.reshape(first, reduced(x, [axis], True)) if is_kept else first


@rule("argmax", "argmin")
def place(w: Writer, input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    name = w.target.rpartition(".")[2]
    x = w.cast(input, "int32") if input.dtype == "bool" else input
    if dim is None:
        return _place(w, name, w.reshape(x, (count(x.shape),)), 0, False)
    return _place(w, name, x, x.axis(dim), keepdim)


@rule("all", "any")
def all_or_any(w: Writer, input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    axes = axes_of(input, dim)
    name = w.target.rpartition(".")[2]
    shape = reduced(input, axes, keepdim)
    return w.emit(name, w.cast(input, "bool"), axes, keepdim, dtype="bool", shape=shape)


@rule("torch.Tensor._is_all_true", "torch.Tensor._is_any_true")
def of_all(w: Writer, input: Tensor) -> Tensor:
    name = w.target.rpartition("_is_")[2][:3]
    return w.emit(name, input, axes_of(input, None), False, dtype="bool", shape=())


@rule("cumsum")
def cumsum(w: Writer, input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    x = w.cast(input, w.dtype)
    return w.emit("cumsum", x, x.axis(dim), False, False, False, dtype=w.dtype, shape=x.shape)


@rule("cumprod")
def cumprod(w: Writer, input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    x = w.cast(input, w.dtype)
    return w.emit("cumprod", x, x.axis(dim), False, False, dtype=w.dtype, shape=x.shape)


@rule("logsumexp")
def logsumexp(w: Writer, input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    axes = axes_of(input, dim)
    shape = reduced(input, axes, keepdim)
    return w.emit("logsumexp", input, axes, keepdim, False, dtype=input.dtype, shape=shape)


@rule("var", "std")
def spread(w: Writer, input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False,
           *, correction: Any = 1) -> Tensor:  # fmt: skip
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    axes = axes_of(input, dim)
    total = 1
    for axis in axes:
        total *= input.static(axis)
    if total <= correction:
        raise RefusedError("It has too few elements for its correction.")
    centred = w.binary("subtract", input, mean_over(w, input, axes, True))
    square = w.emit("square", centred, dtype=input.dtype, shape=input.shape)
    variance = w.scale(mean_over(w, square, axes, keepdim), total / (total - correction))
    if w.target.endswith("var"):
        return variance
    return w.emit("sqrt", variance, dtype=variance.dtype, shape=variance.shape)


def length_of(w: Writer, x: Tensor, p: Any, axes: list[int], is_kept: bool) -> Tensor:
    """Return the norm of order `p` over dimensions."""
    if p in ("fro", None):
        p = 2.0
    shape = reduced(x, axes, is_kept)
    if p == 2:
        square = w.emit("square", x, dtype=x.dtype, shape=x.shape)
        total = w.emit("sum", square, axes, None, is_kept, dtype=x.dtype, shape=shape)
        return w.emit("sqrt", total, dtype=x.dtype, shape=shape)
    size = w.emit("abs", x, dtype=x.dtype, shape=x.shape)
    if p == 1:
        return w.emit("sum", size, axes, None, is_kept, dtype=x.dtype, shape=shape)
    if p in (float("inf"), float("-inf")):
        name = "max" if p > 0 else "min"
        return w.emit(name, size, axes, is_kept, dtype=x.dtype, shape=shape)
    raise RefusedError(f"The order {p} is not supported.")


@rule("norm", "torch.linalg.vector_norm", "torch.linalg.norm")
def norm(
    w: Writer, input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, **kw: Any
) -> Tensor:
    if category(input.dtype) != 2:
        raise RefusedError("Only norms of real floats are supported.")
    order = kw.get("ord", p)
    return length_of(w, w.cast(input, w.dtype), order, axes_of(input, dim), keepdim)


@rule("normalize")
def normalize(w: Writer, input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    length = length_of(w, input, p, axes_of(input, dim), True)
    bounded = w.emit("clip", length, eps, float("inf"), dtype=length.dtype, shape=length.shape)
    return w.binary("divide", input, bounded)


@rule("torch._weight_norm")
def weight_norm(w: Writer, v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    axes = [axis for axis in range(v.ndim) if axis != v.axis(dim)]
    return w.binary("multiply", v, w.binary("divide", g, length_of(w, v, 2, axes, True)))


@rule("topk")
def topk(
    w: Writer, input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, ...]:
    axis = input.axis(dim)
    shape = (*input.shape[:axis], k, *input.shape[axis + 1 :])
    values = [(input.dtype, shape), ("int64", shape)]
    return w.emit_many("topk", input, k, axis, largest, True, values=values)


def in_order(w: Writer, x: Tensor, axis: int, is_descending: bool) -> tuple[Tensor, ...]:
    """Sort stably along a dimension; return the elements and their original positions."""
    values = [(x.dtype, x.shape), ("int64", x.shape)]
    return w.emit_many("argsort", x, axis, is_descending, True, values=values)


@rule("argsort")
def argsort(w: Writer, input: Tensor, dim: int = -1, descending: bool = False, **_: Any) -> Tensor:
    return in_order(w, input, input.axis(dim), descending)[1]


@rule("sort")
def sort(
    w: Writer, input: Tensor, dim: int = -1, descending: bool = False, **_: Any
) -> tuple[Tensor, ...]:
    return in_order(w, input, input.axis(dim), descending)


@rule("cdist")
def cdist(w: Writer, x1: Tensor, x2: Tensor, p: float = 2.0, **_: Any) -> Tensor:
    left = w.reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    right = w.reshape(x2, (*x2.shape[:-2], 1, *x2.shape[-2:]))
    apart = w.binary("subtract", left, right)
    return length_of(w, apart, p, [apart.ndim - 1], False)
