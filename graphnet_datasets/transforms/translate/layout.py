"""Rules for operators that move elements and change shapes."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...sample.arguments import Named
from ...sample.symbols import Dim
from .elementwise import cast
from .handles import RefusedError, Tensor
from .registry import rule
from .writer import Writer, broadcast


@rule(
    "contiguous", "detach", "clone", "alias", "torch.Tensor.cpu", "torch.Tensor.cuda",
    "torch.Tensor.requires_grad_", "torch.Tensor.data", "torch.Tensor.resolve_conj", "lift_fresh",
)  # fmt: skip
def same(w: Writer, input: Tensor, **_: Any) -> Tensor:
    return input


@rule("torch.Tensor.to")
def to(w: Writer, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    for arg in (*args, kwargs.get("dtype"), kwargs.get("other")):
        if isinstance(arg, Named) and arg.kind == "dtype":
            return cast(w, input, arg)
        if isinstance(arg, Tensor):
            return w.cast(input, arg.dtype)
    return input


@rule("type_as")
def type_as(w: Writer, input: Tensor, other: Tensor) -> Tensor:
    return w.cast(input, other.dtype)


@rule("torch.Tensor.type")
def type_(w: Writer, input: Tensor, dtype: Any, **_: Any) -> Tensor:
    return cast(w, input, dtype)


@rule("torch.Tensor.copy_")
def copy(w: Writer, input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return w.expand(w.cast(src, input.dtype), input.shape)


@rule("torch.Tensor.unfold")
def unfold(w: Writer, input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    axis = input.axis(dimension)
    return w.emit("tensor_unfold", input, axis, size, step, dtype=input.dtype, shape=w.shape)


_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "short", "bool", "char", "byte")


@rule(*(f"torch.Tensor.{name}" for name in _CASTS))
def to_own_dtype(w: Writer, input: Tensor, **_: Any) -> Tensor:
    return w.cast(input, w.dtype)


def sizes_of(sizes: tuple[Any, ...]) -> list[Any]:
    """Return sizes that a method takes as separate arguments or as one list or tuple."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else list(sizes)


def wanted_shape(w: Writer, sizes: Sequence[Any]) -> tuple[list[Any], tuple[Dim, ...]]:
    """Return the sizes to request, and the recorded shape of the result."""
    recorded = w.shape
    requested = [
        sizes[axis] if isinstance(size, str) and len(sizes) == len(recorded) else size
        for axis, size in enumerate(recorded)
    ]
    return requested, recorded


@rule("view", "reshape", "torch.Tensor.unflatten", "torch.unflatten", "torch.Tensor.view_as",
      "torch.Tensor.reshape_as", "flatten", "ravel", "torch.Tensor._unsafe_view")  # fmt: skip
def reshape(w: Writer, input: Tensor, *sizes: Any, **_: Any) -> Tensor:
    requested_sizes = sizes_of(sizes)
    if len(requested_sizes) == 1 and isinstance(requested_sizes[0], Named):
        return w.emit("view_dtype", input, requested_sizes[0], dtype=w.dtype, shape=w.shape)
    if all(isinstance(size, int) for size in w.shape):
        return w.reshape(input, w.shape)
    unknown = sum(isinstance(size, str) for size in w.shape)
    if unknown > 1 and len(requested_sizes) == len(w.shape):
        requested, recorded = wanted_shape(w, requested_sizes)
        return w.emit("reshape", input, requested, dtype=input.dtype, shape=recorded)
    return w.reshape(input, w.shape)


@rule("squeeze", "unsqueeze", "torch.atleast_2d")
def change_rank(w: Writer, input: Tensor, dim: Any = None) -> Tensor:
    recorded = w.shape
    if all(isinstance(size, int) for size in recorded) or dim is None:
        return w.reshape(input, recorded)
    name = "squeeze" if len(recorded) < input.ndim else "unsqueeze"
    if len(recorded) == input.ndim:
        return input
    axes = [dim] if isinstance(dim, int) else list(dim)
    rank = max(input.ndim, len(recorded))
    return w.emit(name, input, [axis % rank for axis in axes], dtype=input.dtype, shape=recorded)


@rule("transpose", "swapaxes", "swapdims")
def transpose(w: Writer, input: Tensor, dim0: int, dim1: int) -> Tensor:
    return w.swap(input, dim0, dim1)


@rule("torch.Tensor.t", "torch.t", "torch.Tensor.T", "torch.Tensor.mT")
def transpose_last(w: Writer, input: Tensor) -> Tensor:
    return w.swap(input, -2, -1) if input.ndim > 1 else input


@rule("permute")
def permute(w: Writer, input: Tensor, *dims: Any) -> Tensor:
    return w.permute(input, [input.axis(axis) for axis in sizes_of(dims)])


@rule("movedim", "moveaxis")
def movedim(w: Writer, input: Tensor, source: Any, destination: Any) -> Tensor:
    sources = [input.axis(axis) for axis in sizes_of((source,))]
    places = [input.axis(axis) for axis in sizes_of((destination,))]
    order = [axis for axis in range(input.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return w.permute(input, order)


@rule("expand", "broadcast_to", "expand_as")
def expand(w: Writer, input: Tensor, *sizes: Any, **_: Any) -> Tensor:
    requested, recorded = sizes_of(sizes), w.shape
    if recorded == input.shape:
        return input
    if len(requested) != len(recorded) or any(isinstance(size, Tensor) for size in requested):
        return w.expand(input, recorded)
    return w.emit("expand", input, wanted_shape(w, requested)[0], dtype=input.dtype, shape=recorded)


@rule("torch.Tensor.repeat", "torch.tile", "torch.Tensor.tile")
def repeat(w: Writer, input: Tensor, *repeats: Any) -> Tensor:
    times = sizes_of(repeats)
    times = [1] * (input.ndim - len(times)) + times
    wide = input
    if len(times) > input.ndim:
        wide = w.reshape(input, (*[1] * (len(times) - input.ndim), *input.shape))
    return w.emit("tile", wide, times, dtype=input.dtype, shape=w.shape)


@rule("repeat_interleave")
def repeat_interleave(
    w: Writer, input: Tensor, repeats: Any, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    if isinstance(repeats, Tensor):
        raise RefusedError("A tensor of repeats is not supported.")
    x = w.reshape(input, (-1,)) if dim is None else input
    return w.emit("repeat_interleave", x, repeats, dim or 0, -1, dtype=input.dtype, shape=w.shape)


@rule("cat", "concat", "concatenate")
def cat(w: Writer, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    nonempty = [tensor for tensor in tensors if tensor.shape != (0,)] or list(tensors)
    parts = [w.cast(tensor, w.dtype) for tensor in nonempty]
    return w.emit("concat", parts, parts[0].axis(dim), dtype=w.dtype, shape=w.shape)


@rule("stack")
def stack(w: Writer, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    parts = [w.cast(tensor, w.dtype) for tensor in tensors]
    return w.emit("stack", parts, dim % (parts[0].ndim + 1), dtype=w.dtype, shape=w.shape)


def split_into(w: Writer, x: Tensor, sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    """Split a tensor into pieces of the given sizes along a dimension."""
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
    if len(sizes) == 1:
        return (x,)
    return w.emit_many("split", x, list(sizes), axis, values=[(x.dtype, shape) for shape in shapes])


@rule("split", "split_with_sizes")
def split(
    w: Writer, tensor: Tensor, split_size_or_sections: Any, dim: int = 0
) -> tuple[Tensor, ...]:
    axis, split_size = tensor.axis(dim), split_size_or_sections
    if isinstance(split_size, int):
        whole = tensor.static(axis)
        split_size = [min(split_size, whole - at) for at in range(0, whole, split_size)]
    return split_into(w, tensor, split_size, axis)


@rule("chunk")
def chunk(w: Writer, input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    return split(w, input, -(-input.static(dim) // chunks), dim)


@rule("unbind")
def unbind(w: Writer, input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    axis = input.axis(dim)
    shape = (*input.shape[:axis], *input.shape[axis + 1 :])
    number = input.static(axis)
    if number == 1:
        return (w.reshape(input, shape),)
    return w.emit_many("unbind", input, axis, values=[(input.dtype, shape)] * number)


@rule("roll")
def roll(w: Writer, input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    moves, axes = sizes_of((shifts,)), sizes_of((dims,))
    return w.emit("roll", input, moves, axes, dtype=input.dtype, shape=input.shape)


@rule("flip")
def flip(w: Writer, input: Tensor, *dims: Any) -> Tensor:
    return w.emit("flip", input, sizes_of(dims), dtype=input.dtype, shape=input.shape)


@rule("tril", "triu")
def triangle(w: Writer, input: Tensor, diagonal: int = 0) -> Tensor:
    name = w.target.rpartition(".")[2].rstrip("_")
    return w.emit(name, input, diagonal, dtype=input.dtype, shape=input.shape)


@rule("torch.Tensor.size", "torch.Tensor.shape")
def size(w: Writer, input: Tensor, dim: int | None = None) -> Any:
    sizes = tuple(w.size(dim_size) for dim_size in input.shape)
    return sizes if dim is None else sizes[input.axis(dim)]


@rule("torch.Tensor.dim", "torch.Tensor.ndim")
def rank(w: Writer, input: Tensor) -> int:
    return input.ndim


@rule("torch.Tensor.numel", "torch.numel")
def numel(w: Writer, input: Tensor) -> int:
    total = 1
    for axis in range(input.ndim):
        total *= input.static(axis)
    return total


@rule("meshgrid")
def meshgrid(w: Writer, *tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    axes = sizes_of(tensors)
    if indexing != "ij":
        axes = [axes[1], axes[0], *axes[2:]]
    shape = tuple(axis.shape[0] if axis.ndim else 1 for axis in axes)
    grids = [
        w.expand(w.reshape(axis, [1] * at + [shape[at]] + [1] * (len(axes) - at - 1)), shape)
        for at, axis in enumerate(axes)
    ]
    return tuple(grids) if indexing == "ij" else (grids[1], grids[0], *grids[2:])


@rule("broadcast_tensors")
def broadcast_tensors(w: Writer, *tensors: Any) -> tuple[Tensor, ...]:
    each_tensor = sizes_of(tensors)
    shape = broadcast(*(tensor.shape for tensor in each_tensor))
    return tuple(w.expand(tensor, shape) for tensor in each_tensor)


@rule("view_as_complex", "view_as_real", "torch.Tensor.real", "torch.real", "torch.Tensor.imag",
      "torch.imag")  # fmt: skip
def complex_view(w: Writer, input: Tensor) -> Tensor:
    name = {"view_as_complex": "as_complex", "view_as_real": "as_real"}
    last = w.target.rpartition(".")[2]
    if last == "real" and not input.dtype.startswith("complex"):
        return input
    return w.emit(name.get(last, last), input, dtype=w.dtype, shape=w.shape)
