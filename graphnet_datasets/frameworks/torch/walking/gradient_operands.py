"""Operand checks for backward kernels, run on fake tensors before the graph runs.

Autograd passes matching tensors to these kernels, so the kernels do not check them. Most assume
that a gradient has the shape of the corresponding forward result. A recorded graph may violate
that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ....errors import MaterializeError
from .fused_layers import is_known
from .stride_blind import has_own_elements

_ATEN = torch.ops.aten


def is_guarded(packet: str) -> bool:
    """Return whether the operands of an ATen packet are checked here.

    >>> is_guarded("convolution_backward"), is_guarded("tanh_backward")
    (True, False)
    """
    return packet in _GUARDS


def check_gradient_operands(packet: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check that the shapes, dtypes and flags of a call match.

    Raises:
        MaterializeError: If they do not match, or are not known before the run.

    >>> tensor = torch.ones(2, 3)
    >>> call = (tensor, tensor, (3,), torch.ones(2, 1), torch.ones(2, 1), None, None, (True,) * 3)
    >>> check_gradient_operands("native_layer_norm_backward", call, {})
    >>> check_gradient_operands("native_layer_norm_backward", (torch.ones(9), *call[1:]), {})
    Traceback (most recent call last):
    graphnet_datasets.errors.MaterializeError: Expected `grad_out` of shape [2, 3], got [9].
    """
    names, check = _GUARDS[packet]
    arguments = dict(zip(names, args, strict=False)) | dict(kwargs)
    if len(args) > len(names) or not set(arguments) <= set(names):
        raise MaterializeError(
            f"Expected the arguments {', '.join(names)}, got {len(args)} positional arguments and "
            f"the keywords {', '.join(kwargs) or 'none'}."
        )
    check({name: arguments.get(name) for name in names})


def _has_shape(arguments: Mapping[str, Any], name: str, shape: Sequence[int]) -> None:
    tensor = arguments[name]
    if not is_known(tensor) or tuple(tensor.shape) != tuple(shape):
        actual = list(tensor.shape) if is_known(tensor) else "an unknown shape"
        raise MaterializeError(f"Expected `{name}` of shape {list(shape)}, got {actual}.")


def _has_numel(arguments: Mapping[str, Any], name: str, count: int) -> None:
    tensor = arguments[name]
    if not is_known(tensor) or tensor.numel() != count:
        actual = tensor.numel() if is_known(tensor) else "an unknown number"
        raise MaterializeError(f"Expected `{name}` to have {count} elements, got {actual}.")


def _have_one_dtype(arguments: Mapping[str, Any], *names: str) -> None:
    tensors = [arguments[name] for name in names if arguments[name] is not None]
    if len({(tensor.dtype, tensor.device) for tensor in tensors}) > 1:
        raise MaterializeError(
            f"Expected {_listed(names)} to have the same dtype and be on the same device."
        )
    if not tensors[0].is_floating_point():
        raise MaterializeError(
            f"Expected {_listed(names)} to be floating-point tensors, got {tensors[0].dtype}."
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _known(arguments: Mapping[str, Any], name: str, *ranks: int) -> torch.Tensor:
    tensor = arguments[name]
    if not is_known(tensor) or (ranks and tensor.dim() not in ranks) or 0 in tensor.shape:
        actual = list(tensor.shape) if is_known(tensor) else "an unknown shape"
        rank = f" of {' or '.join(map(str, ranks))} dimensions" if ranks else ""
        raise MaterializeError(f"Expected `{name}` to be a non-empty tensor{rank}, got {actual}.")
    return tensor


def _mask(arguments: Mapping[str, Any], length: int = 3) -> None:
    mask = arguments["output_mask"]
    if (
        not isinstance(mask, list | tuple)
        or len(mask) != length
        or any(type(flag) is not bool for flag in mask)
    ):
        raise MaterializeError(
            f"Expected `output_mask` to be a list of {length} booleans, got {mask!r}."[:120]
        )


def _whole(value: Any, low: int = 0) -> bool:
    return type(value) is int and low <= value < 2**31


def _integers(arguments: Mapping[str, Any], name: str, length: int, low: int) -> list[int]:
    values = arguments[name]
    if (
        not isinstance(values, list | tuple)
        or len(values) not in (1, length)
        or not all(_whole(value, low) for value in values)
    ):
        raise MaterializeError(
            f"Expected `{name}` to be 1 or {length} integers of at least {low}, got {values!r}."[
                :140
            ]
        )
    return list(values) * (length if len(values) == 1 else 1)


def _check_convolution(arguments: Mapping[str, Any]) -> None:
    source = _known(arguments, "input", 3, 4, 5)
    rank = source.dim()
    weight = _known(arguments, "weight", rank)
    _have_one_dtype(arguments, "input", "weight", "grad_output")
    spatial = rank - 2
    stride = _integers(arguments, "stride", spatial, 1)
    padding = _integers(arguments, "padding", spatial, 0)
    dilation = _integers(arguments, "dilation", spatial, 1)
    extra = _integers(arguments, "output_padding", spatial, 0)
    groups, transposed = arguments["groups"], arguments["transposed"]
    _mask(arguments)
    if type(transposed) is not bool or not _whole(groups, 1):
        raise MaterializeError(
            "Expected `groups` to be a positive integer and `transposed` a boolean, got "
            f"{groups!r} and {transposed!r}."
        )
    inside, outside = (1, 0) if transposed else (0, 1)
    channels = weight.shape[inside] * (groups if transposed else 1)
    in_channels = weight.shape[outside] * (1 if transposed else groups)
    if source.shape[1] != in_channels or channels % groups or in_channels % groups:
        raise MaterializeError(
            f"Expected `input` with {in_channels} channels in {groups} groups, got "
            f"{source.shape[1]} channels."
        )
    sizes = []
    for at in range(spatial):
        reach = dilation[at] * (weight.shape[2 + at] - 1)
        size = source.shape[2 + at]
        if transposed:
            if extra[at] >= max(stride[at], dilation[at]):
                raise MaterializeError(
                    "Expected `output_padding` to be less than stride or dilation "
                    f"({stride[at]}, {dilation[at]}), got {extra[at]}."
                )
            sizes.append((size - 1) * stride[at] - 2 * padding[at] + reach + extra[at] + 1)
        else:
            sizes.append((size + 2 * padding[at] - reach - 1) // stride[at] + 1)
    _has_shape(arguments, "grad_output", (source.shape[0], channels, *sizes))
    biases = arguments["bias_sizes"]
    if biases is not None and list(biases) not in ([channels], [0]):
        raise MaterializeError(
            f"Expected `bias_sizes` to be None, [0] or [{channels}], got {biases!r}."[:120]
        )


def _check_layer_norm(arguments: Mapping[str, Any]) -> None:
    source = _known(arguments, "input")
    normalized = arguments["normalized_shape"]
    count = len(normalized) if isinstance(normalized, list | tuple) else 0
    if not 0 < count <= source.dim() or list(source.shape[-count:]) != list(normalized):
        raise MaterializeError(
            f"Expected `normalized_shape` to be the last sizes of {list(source.shape)}, got "
            f"{normalized!r}."[:140]
        )
    _has_shape(arguments, "grad_out", source.shape)
    _have_one_dtype(arguments, "grad_out", "input")
    rows = math.prod(source.shape[:-count])
    for name in ("mean", "rstd"):
        _has_numel(arguments, name, rows)
        if not has_own_elements(arguments[name]):  # unlike other operands, read without strides
            raise MaterializeError(
                f"The elements of `{name}` share memory, since its stride is "
                f"{list(arguments[name].stride())}, and the kernel ignores strides. Make the "
                "operand contiguous first."
            )
    _check_statistics(arguments, source, "mean", "rstd")
    for name in ("weight", "bias"):
        if arguments[name] is not None:
            _has_shape(arguments, name, normalized)
    _have_one_dtype(
        arguments, *(name for name in ("weight", "bias", "mean") if arguments[name] is not None)
    )
    _mask(arguments)


def _check_statistics(arguments: Mapping[str, Any], source: torch.Tensor, *names: str) -> None:
    """Check that statistics have the dtype of the input, or float32 for a 16-bit input."""
    dtypes = {arguments[name].dtype for name in names if arguments[name] is not None}
    if len(dtypes) > 1 or not dtypes <= {source.dtype, torch.float32}:
        raise MaterializeError(
            f"Expected {_listed(names)} to have the dtype of the input ({source.dtype}) or all "
            "torch.float32."
        )


def _check_group_norm(arguments: Mapping[str, Any]) -> None:
    source = _known(arguments, "input")
    sizes = [arguments[name] for name in ("N", "C", "HxW", "group")]
    if not all(_whole(size, 1) for size in sizes):
        raise MaterializeError(
            f"Expected `N`, `C`, `HxW` and `group` to be positive integers, got {sizes}."
        )
    batch, channels, pixels, groups = sizes
    if batch * channels * pixels != source.numel() or channels % groups:
        raise MaterializeError(
            "Expected `N`, `C` and `HxW` to be the sizes of `input`, and `group` to divide `C`, "
            f"got {batch}, {channels}, {pixels} and {groups} for {source.numel()} elements."
        )
    _has_numel(arguments, "grad_out", source.numel())
    _have_one_dtype(arguments, "grad_out", "input")
    for name in ("mean", "rstd"):
        _has_numel(arguments, name, batch * groups)
    if arguments["weight"] is not None:
        _has_numel(arguments, "weight", channels)
    _check_statistics(arguments, source, "mean", "rstd", "weight")
    _mask(arguments)


def _check_batch_norm(arguments: Mapping[str, Any]) -> None:
    source = _known(arguments, "input")
    if source.dim() < 2:
        raise MaterializeError(
            f"Expected `input` to have at least 2 dimensions, got shape {list(source.shape)}."
        )
    channels = source.shape[1]
    _has_shape(arguments, "grad_out", source.shape)
    _have_one_dtype(arguments, "grad_out", "input")
    if type(arguments["train"]) is not bool:
        raise MaterializeError(f"Expected `train` to be a boolean, got {arguments['train']!r}.")
    needed = ("save_mean", "save_invstd") if arguments["train"] else ("running_mean", "running_var")
    for name in ("weight", "running_mean", "running_var", "save_mean", "save_invstd"):
        if name in needed or (arguments[name] is not None and not name.startswith("save")):
            _has_numel(arguments, name, channels)
    _check_statistics(arguments, source, "weight", *needed)
    _mask(arguments)


def _check_pooling(arguments: Mapping[str, Any]) -> None:
    """Check adaptive pooling: gradient and input share batch and channels, not spatial sizes."""
    source = _known(arguments, "self")
    gradient = _known(arguments, "grad_output", source.dim())
    _have_one_dtype(arguments, "self", "grad_output")
    spatial = arguments["spatial"]
    if source.dim() not in (spatial + 1, spatial + 2):
        raise MaterializeError(
            f"Expected an input of {spatial + 1} or {spatial + 2} dimensions, got shape "
            f"{list(source.shape)}."
        )
    if gradient.shape[:-spatial] != source.shape[:-spatial]:
        raise MaterializeError(
            "Expected `grad_output` to have the batch and channel sizes of the input "
            f"({list(source.shape[:-spatial])}), got shape {list(gradient.shape)}."
        )


def _adaptive(spatial: int) -> Callable[[Mapping[str, Any]], None]:
    return lambda arguments: _check_pooling({**arguments, "spatial": spatial})


def _check_softmax(arguments: Mapping[str, Any]) -> None:
    output = arguments["output"]
    if not is_known(output):
        raise MaterializeError("Expected `output` to be a tensor of known shape.")
    _has_shape(arguments, "grad_output", output.shape)
    _have_one_dtype(arguments, "grad_output", "output")
    if arguments["input_dtype"] != output.dtype:
        raise MaterializeError(
            f"Expected `input_dtype` to be {output.dtype}, got {arguments['input_dtype']}."
        )


def _like_forward(forward: str, *names: str) -> Callable[[Mapping[str, Any]], None]:
    """Return a check that the gradient has the shape of the forward operator's result."""

    def check(arguments: Mapping[str, Any]) -> None:
        source = _known(arguments, "self")
        _have_one_dtype(arguments, "self", "grad_output")
        try:
            result = getattr(_ATEN, forward)(source, *(arguments[name] for name in names))
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise MaterializeError(
                f"`{forward}` does not accept the other arguments: {error}"
            ) from error
        _has_shape(arguments, "grad_output", result.shape)

    return check


def _check_attention(arguments: Mapping[str, Any]) -> None:
    query, key = _known(arguments, "query", 4), _known(arguments, "key", 4)
    batch, heads, length, width = query.shape
    # Several query heads may share one key head; the kernel does not check divisibility.
    shared = key.shape[1] if heads % key.shape[1] == 0 else heads
    _has_shape(arguments, "key", (batch, shared, key.shape[2], width))
    _has_shape(arguments, "value", key.shape)
    _have_one_dtype(arguments, "query", "key", "value")
    if (
        arguments["dropout_p"] not in (None, 0, 0.0)
        or type(arguments["is_causal"] or False) is not bool
    ):
        raise MaterializeError(
            "Expected `dropout_p` to be 0 and `is_causal` to be a boolean, got "
            f"{arguments['dropout_p']!r} and {arguments['is_causal']!r}."
        )
    if arguments["scale"] is not None and type(arguments["scale"]) not in (int, float):
        raise MaterializeError(
            f"Expected `scale` to be None or a number known before the run, got a "
            f"{type(arguments['scale']).__name__}."
        )
    mask = arguments["attn_mask"]
    if mask is not None:
        shape = (batch, heads, length, key.shape[2])
        if not is_known(mask) or mask.dim() not in (2, 4) or mask.dtype not in (
            query.dtype, torch.bool
        ):  # fmt: skip
            raise MaterializeError(
                "Expected `attn_mask` to be a 2-D or 4-D tensor of dtype torch.bool or "
                f"{query.dtype}."
            )
        if any(size not in (1, full_size) for size, full_size in zip(
            mask.shape[::-1], shape[::-1], strict=False
        )):  # fmt: skip
            raise MaterializeError(
                f"Expected `attn_mask` to broadcast to {list(shape)}, got {list(mask.shape)}."
            )


def _check_attention_backward(arguments: Mapping[str, Any]) -> None:
    _check_attention(arguments)
    query = arguments["query"]
    for name in ("grad_out", "out"):
        _has_shape(arguments, name, query.shape)
    _have_one_dtype(arguments, "query", "grad_out", "out")
    _has_shape(arguments, "logsumexp", query.shape[:3])
    if arguments["logsumexp"].dtype != (
        torch.float64 if query.dtype == torch.float64 else torch.float32
    ):
        raise MaterializeError(
            "Expected `logsumexp` of dtype torch.float64 for float64 queries and torch.float32 "
            f"otherwise, got {arguments['logsumexp'].dtype}."
        )


def _check_weight_norm(arguments: Mapping[str, Any]) -> None:
    weight = _known(arguments, "v")
    dim, rank = arguments["dim"], weight.dim()
    dim = 0 if dim is None else dim
    if type(dim) is not int or dim not in (0, rank - 1):
        raise MaterializeError(f"Expected `dim` to be 0 or {rank - 1}, got {dim!r}."[:80])
    norms = [size if axis == dim else 1 for axis, size in enumerate(weight.shape)]
    for name in ("g", "norms", "grad"):
        if name in arguments:
            _has_shape(arguments, name, weight.shape if name == "grad" else norms)
    _have_one_dtype(arguments, *(name for name in ("v", "g", "grad") if name in arguments))
    if "norms" in arguments and arguments["norms"].dtype not in (weight.dtype, torch.float32):
        raise MaterializeError(
            f"Expected `norms` of dtype {weight.dtype} or torch.float32, got "
            f"{arguments['norms'].dtype}."
        )


def _check_weight_norm_backward(arguments: Mapping[str, Any]) -> None:
    names = {"v": "saved_v", "g": "saved_g", "norms": "saved_norms", "grad": "grad_w"}
    _check_weight_norm(
        {"dim": arguments["dim"], **{name: arguments[saved] for name, saved in names.items()}}
    )


_POOL = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
_GUARDS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], None]]] = {
    "convolution_backward": (
        (
            "grad_output", "input", "weight", "bias_sizes", "stride", "padding", "dilation",
            "transposed", "output_padding", "groups", "output_mask",
        ),
        _check_convolution,
    ),
    "native_layer_norm_backward": (
        (
            "grad_out", "input", "normalized_shape", "mean", "rstd", "weight", "bias",
            "output_mask",
        ),
        _check_layer_norm,
    ),
    "native_group_norm_backward": (
        (
            "grad_out", "input", "mean", "rstd", "weight", "N", "C", "HxW", "group", "output_mask",
        ),
        _check_group_norm,
    ),
    "native_batch_norm_backward": (
        (
            "grad_out", "input", "weight", "running_mean", "running_var", "save_mean",
            "save_invstd", "train", "eps", "output_mask",
        ),
        _check_batch_norm,
    ),
    "_weight_norm_interface": (("v", "g", "dim"), _check_weight_norm),
    "_weight_norm_interface_backward": (
        ("grad_w", "saved_v", "saved_g", "saved_norms", "dim"),
        _check_weight_norm_backward,
    ),
    "_adaptive_avg_pool2d_backward": (("grad_output", "self"), _adaptive(2)),
    "_adaptive_avg_pool3d_backward": (("grad_output", "self"), _adaptive(3)),
    "avg_pool2d_backward": (("grad_output", "self", *_POOL), _like_forward("avg_pool2d", *_POOL)),
    "avg_pool3d_backward": (("grad_output", "self", *_POOL), _like_forward("avg_pool3d", *_POOL)),
    "_softmax_backward_data": (("grad_output", "output", "dim", "input_dtype"), _check_softmax),
    "_log_softmax_backward_data": (("grad_output", "output", "dim", "input_dtype"), _check_softmax),
    "_scaled_dot_product_flash_attention_for_cpu": (
        ("query", "key", "value", "dropout_p", "is_causal", "attn_mask", "scale"),
        _check_attention,
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        (
            "grad_out", "query", "key", "value", "out", "logsumexp", "dropout_p", "is_causal",
            "attn_mask", "scale",
        ),
        _check_attention_backward,
    ),
}  # fmt: skip
"""Argument names of each operator, and the function that checks the arguments."""
