"""Rules for convolutions, pooling and resampling."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

from typing import Any

from .handles import RefusedError, Tensor
from .registry import rule
from .writer import Writer

_LAYOUTS = {2: "NCHW", 3: "NCDHW"}


def many(value: Any, number: int) -> list[int]:
    """Return one integer per spatial dimension."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * number if len(values) == 1 else values


def with_height(w: Writer, x: Tensor) -> Tensor:
    """Return a tensor with a height of 1 before its last dimension."""
    return w.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


@rule("conv1d", "conv2d", "conv3d")
def conv(
    w: Writer,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    rank = weight.ndim - 2
    strides, dilations = many(stride, rank), many(dilation, rank)
    if padding == "same":
        totals = [d * (weight.static(2 + at) - 1) for at, d in enumerate(dilations)]
        pads = [part for total in totals for part in (total // 2, total - total // 2)]
        pads = pads[::2] if pads[::2] == pads[1::2] else pads
    else:
        pads = many(0 if padding == "valid" else padding, rank)
    x, kernel = input, weight
    if x.ndim == rank + 1:
        x = w.reshape(x, (1, *x.shape))
    if rank == 1:
        x, kernel = with_height(w, x), with_height(w, kernel)
        strides, dilations = [1, *strides], [1, *dilations]
        pads = [0, *pads] if len(pads) == 1 else [0, 0, *pads]
    shape = _conv_shape(w, x, kernel, strides, pads, dilations)
    layout = _LAYOUTS[kernel.ndim - 2]
    rest = (dilations, groups) if kernel.ndim == 4 else (groups, dilations)
    result = w.emit(
        f"conv{kernel.ndim - 2}d", x, kernel, strides, pads, "EXPLICIT", *rest, layout,
        dtype=x.dtype, shape=shape,
    )  # fmt: skip
    return _finish(w, result, bias, rank, input.ndim)


def _finish(w: Writer, result: Tensor, bias: Tensor | None, rank: int, ndim: int) -> Tensor:
    if bias is not None:
        column = w.reshape(bias, (1, bias.shape[0], *[1] * (result.ndim - 2)))
        result = w.binary("add", result, column)
    if rank == 1:
        result = w.reshape(result, (*result.shape[:2], result.shape[3]))
    return w.reshape(result, result.shape[1:]) if ndim == rank + 1 else result


def _conv_shape(
    w: Writer, x: Tensor, kernel: Tensor, strides: list[int], pads: list[int], dilations: list[int]
) -> tuple[Any, ...]:
    sizes: list[Any] = [x.shape[0], kernel.shape[0]]
    rank = kernel.ndim - 2
    for at in range(rank):
        pad = 2 * pads[at] if len(pads) == rank else pads[2 * at] + pads[2 * at + 1]
        reach = dilations[at] * (kernel.static(2 + at) - 1) + 1
        size = x.shape[2 + at]
        if isinstance(size, str):
            sizes.append(w.shape[at - rank])
        else:
            sizes.append((size + pad - reach) // strides[at] + 1)
    return tuple(sizes)


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    w: Writer,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    rank = weight.ndim - 2
    strides, dilations = many(stride, rank), many(dilation, rank)
    pads, extra = many(padding, rank), many(output_padding, rank)
    x, kernel = input, weight
    if x.ndim != weight.ndim:
        raise RefusedError("Its input has no batch dimension.")
    if rank == 1:
        x, kernel = with_height(w, x), with_height(w, kernel)
        strides, dilations, pads, extra = [1, *strides], [1, *dilations], [0, *pads], [0, *extra]
    sizes: list[Any] = [1, *w.shape[2:]] if rank == 1 else list(w.shape[2:])
    result = w.emit(
        f"conv{kernel.ndim - 2}d_transpose", x, kernel, strides, pads,
        extra if any(extra) else [], [], "EXPLICIT", groups, dilations, _LAYOUTS[kernel.ndim - 2],
        dtype=x.dtype, shape=(x.shape[0], kernel.static(1) * groups, *sizes),
    )  # fmt: skip
    return _finish(w, result, bias, rank, input.ndim)


def _pool(
    w: Writer,
    x: Tensor,
    kernel: list[int],
    strides: list[int],
    pads: list[int],
    kind: str,
    *,
    ceil: bool = False,
    exclusive: bool = True,
    adaptive: bool = False,
) -> Tensor:
    """Write pooling over the last dimensions; 1D pooling becomes 2D pooling of height 1."""
    rank, original = len(kernel), x
    if rank == 1:
        x = with_height(w, x)
        kernel, strides, pads = [1, *kernel], [1, *strides], [0, *pads]
    has_batch = original.ndim == rank + 2
    if not has_batch:
        x = w.reshape(x, (1, *x.shape))
    recorded = w.shape if has_batch else (1, *w.shape)
    shape = (*recorded[:-1], 1, recorded[-1]) if rank == 1 else recorded
    result = w.emit(
        f"pool{len(kernel)}d", x, kernel, strides, pads, ceil, exclusive, _LAYOUTS[len(kernel)],
        kind, False, adaptive, "EXPLICIT", dtype=x.dtype, shape=shape,
    )  # fmt: skip
    return w.reshape(result, w.shape)


@rule("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(
    w: Writer,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    rank = int(w.target[-2])
    if return_indices or set(many(dilation, rank)) != {1}:
        raise RefusedError("Indices and dilated windows are not supported.")
    kernel = many(kernel_size, rank)
    strides = kernel if stride in (None, [], ()) else many(stride, rank)
    return _pool(w, input, kernel, strides, many(padding, rank), "max", ceil=ceil_mode)


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    w: Writer,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    rank = int(w.target[-2])
    kernel = many(kernel_size, rank)
    strides = kernel if stride in (None, [], ()) else many(stride, rank)
    pads = many(padding, rank)
    if divisor_override is not None or (ceil_mode and count_include_pad and any(pads)):
        raise RefusedError("Divisors other than the number of elements are not supported.")
    exclusive = not count_include_pad or not any(pads)
    return _pool(w, input, kernel, strides, pads, "avg", ceil=ceil_mode, exclusive=exclusive)


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
      "adaptive_max_pool2d", "adaptive_max_pool3d")  # fmt: skip
def adaptive_pool(
    w: Writer, input: Tensor, output_size: Any, return_indices: bool = False
) -> Tensor:
    rank = int(w.target[-2])
    if return_indices:
        raise RefusedError("Indices are not supported.")
    output_sizes = many(output_size, rank)
    sizes = [
        input.static(at - rank) if size is None else size for at, size in enumerate(output_sizes)
    ]
    kind = "max" if "max" in w.target else "avg"
    return _pool(w, input, sizes, [1] * rank, [0] * rank, kind, adaptive=True)


_INTERPOLATIONS = {
    ("nearest", 1): "nearest", ("nearest", 2): "nearest", ("nearest", 3): "nearest",
    ("linear", 1): "linear", ("bilinear", 2): "bilinear", ("bicubic", 2): "bicubic",
    ("trilinear", 3): "trilinear",
}  # fmt: skip


@rule("interpolate", "upsample")
def interpolate(
    w: Writer,
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Tensor:
    rank = input.ndim - 2
    kind = _INTERPOLATIONS.get((mode, rank))
    if kind is None or antialias:
        raise RefusedError(f"The mode `{mode}` is not supported.")
    target = [size for size in w.shape[2:] if isinstance(size, int)]
    if len(target) != rank:
        raise RefusedError("Its output size is symbolic.")
    if scale_factor is not None and not recompute_scale_factor and not align_corners:
        for at, factor in enumerate(many(scale_factor, rank)):
            if input.static(2 + at) * factor != target[at]:
                raise RefusedError("Its scale factor is not the ratio of the sizes.")
    x = input
    if rank == 1:
        x, target = with_height(w, x), [1, *target]
        kind = {"linear": "bilinear"}.get(kind, kind)
    sizes = [-1, *target] if len(target) == 2 else target
    layout = _LAYOUTS[len(target)]
    result = w.emit(
        f"{kind}_interp", x, None, None, None, layout, *sizes, [], kind, bool(align_corners), 0,
        dtype=x.dtype, shape=(*x.shape[:2], *target),
    )  # fmt: skip
    return w.reshape(result, w.shape)


@rule("pad")
def pad(w: Writer, input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    pairs = [tuple(pad[at : at + 2]) for at in range(0, len(pad), 2)]
    if not all(isinstance(amount, int) for pair in pairs for amount in pair):
        raise RefusedError("Its padding must be known.")
    if mode == "constant" and min(map(min, pairs), default=0) >= 0:
        flat = [0] * (2 * (input.ndim - len(pairs)))
        flat += [amount for pair in reversed(pairs) for amount in pair]
        return w.emit("pad", input, flat, value or 0.0, dtype=input.dtype, shape=w.shape)
    if mode == "constant":
        raise RefusedError("Negative padding is not supported.")
    kind = {"reflect": "reflect", "replicate": "replicate", "circular": "circular"}[mode]
    x = input
    lead = max(0, 5 - x.ndim)
    axes = lead - (0 if x.ndim > len(pairs) + 1 else 1)
    wide = w.reshape(x, (*x.shape[:2], *[1] * axes, *x.shape[2:])) if axes else x
    flat = [amount for pair in pairs for amount in pair] + [0] * (6 - 2 * len(pairs))
    shape = (*w.shape[:2], *[1] * axes, *w.shape[2:])
    result = w.emit("pad3d", wide, flat, kind, 0.0, "NCDHW", dtype=x.dtype, shape=shape)
    return w.reshape(result, w.shape)


@rule("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(w: Writer, input: Tensor, factor: int) -> Tensor:
    name = w.target.rpartition(".")[2]
    return w.emit(name, input, factor, "NCHW", dtype=input.dtype, shape=w.shape)


@rule("channel_shuffle", "torch.nn.functional.channel_shuffle")
def channel_shuffle(w: Writer, input: Tensor, groups: int) -> Tensor:
    return w.emit("channel_shuffle", input, groups, "NCHW", dtype=input.dtype, shape=input.shape)


@rule("torch.nn.functional.unfold")
def unfold(
    w: Writer, input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    kernel, pads = many(kernel_size, 2), many(padding, 2)
    return w.emit(
        "unfold", input, kernel, many(stride, 2), [*pads, *pads], many(dilation, 2),
        dtype=input.dtype, shape=w.shape,
    )  # fmt: skip


@rule("torch.nn.functional.grid_sample")
def grid_sample(
    w: Writer,
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Tensor:
    if mode not in ("bilinear", "nearest"):
        raise RefusedError(f"The mode `{mode}` is not supported.")
    corners = bool(align_corners)
    return w.emit(
        "grid_sample", input, grid, mode, padding_mode, corners, dtype=input.dtype, shape=w.shape
    )
