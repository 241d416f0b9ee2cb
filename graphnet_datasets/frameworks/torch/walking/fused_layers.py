"""Operand checks for fused layers whose kernels do not check sizes and dtypes.

`torch._transformer_encoder_layer_fwd` reads its biases with the dtype of its input, whatever their
own dtype is. `torch._grouped_mm` checks most operands itself, but not on every device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import torch

from ....errors import MaterializeError

LAYER = "_transformer_encoder_layer_fwd"
PRODUCTS = ("_grouped_mm", "grouped_mm")
_LAYER_NAMES = (
    "src", "embed_dim", "num_heads", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias",
    "use_gelu", "norm_first", "eps", "norm_weight_1", "norm_bias_1", "norm_weight_2", "norm_bias_2",
    "ffn_weight_1", "ffn_bias_1", "ffn_weight_2", "ffn_bias_2", "mask", "mask_type",
)  # fmt: skip
_LAYER_OPTIONS = frozenset({"mask", "mask_type"})


def check_encoder_layer(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check a call of `torch._transformer_encoder_layer_fwd`.

    Raises:
        MaterializeError: If sizes or dtypes do not match or are not known before the run.

    >>> check_encoder_layer((torch.ones(2, 3, 4),), {})
    Traceback (most recent call last):
    graphnet_datasets.errors.MaterializeError: Expected the arguments of an encoder layer.
    """
    arguments = dict(zip(_LAYER_NAMES, args, strict=False)) | dict(kwargs)
    names = set(_LAYER_NAMES)
    if len(args) > len(names) or not names - _LAYER_OPTIONS <= set(arguments) <= names:
        raise MaterializeError("Expected the arguments of an encoder layer.")
    source, heads, hidden = arguments["src"], arguments["num_heads"], arguments["ffn_weight_1"]
    if not is_known(source) or source.dim() != 3 or not source.is_floating_point():
        raise MaterializeError("Expected `src` to be a 3-D floating-point tensor of known shape.")
    batch, length, width = source.shape
    if (
        0 in source.shape
        or arguments["embed_dim"] != width
        or type(heads) is not int
        or not (0 < heads <= width and width % heads == 0)
    ):
        raise MaterializeError(
            "Expected a non-empty `src` whose last size is `embed_dim`, a multiple of `num_heads`, "
            f"got shape {list(source.shape)}, {arguments['embed_dim']} and {heads}."
        )
    inner = hidden.shape[0] if is_known(hidden) and hidden.dim() == 2 else 0
    shapes = {
        "qkv_weight": (3 * width, width), "qkv_bias": (3 * width,),
        "proj_weight": (width, width), "proj_bias": (width,),
        "ffn_weight_1": (inner, width), "ffn_bias_1": (inner,),
        "ffn_weight_2": (width, inner), "ffn_bias_2": (width,),
    }  # fmt: skip
    shapes |= {f"norm_{kind}_{at}": (width,) for kind in ("weight", "bias") for at in (1, 2)}
    for name, shape in shapes.items():
        _check_like(name, arguments[name], shape, source)
    _check_mask(
        arguments.get("mask"), arguments.get("mask_type"), (batch, heads, length), source.dtype
    )


def _check_like(name: str, tensor: Any, shape: tuple[int, ...], source: torch.Tensor) -> None:
    if not is_known(tensor) or tuple(tensor.shape) != shape or 0 in shape:
        actual = list(tensor.shape) if is_known(tensor) else "an unknown shape"
        raise MaterializeError(f"Expected `{name}` of shape {list(shape)}, got {actual}.")
    if (tensor.dtype, tensor.device) != (source.dtype, source.device):
        raise MaterializeError(
            f"Expected `{name}` with the dtype and device of `src` ({source.dtype}, "
            f"{source.device}), got {tensor.dtype} and {tensor.device}."
        )


def _check_mask(mask: Any, kind: Any, sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    if mask is None:
        return
    batch, heads, length = sizes
    shapes = {0: (length, length), 1: (batch, length), 2: (batch, heads, length, length)}
    if type(kind) is not int or kind not in shapes or not is_known(mask):
        raise MaterializeError(
            f"Expected a mask of known shape and `mask_type` 0, 1 or 2, got {kind}."
        )
    # The kernel converts other masks to booleans; `TransformerEncoderLayer` passes its padding
    # mask in the dtype of the input.
    if tuple(mask.shape) != shapes[kind] or mask.dtype not in (torch.bool, dtype):
        raise MaterializeError(
            f"Expected a mask of dtype torch.bool or {dtype} and shape {list(shapes[kind])}, got "
            f"{mask.dtype} and {list(mask.shape)}."
        )


def check_grouped_products(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the matrices of a `torch._grouped_mm` call, and the group offsets if they are needed.

    The kernel itself clamps offsets beyond the last row.

    Raises:
        MaterializeError: If sizes or dtypes do not match.
    """
    names = ("self", "mat2", "offs", "bias", "out_dtype")
    arguments = {
        {"input": "self", "mat_a": "self", "mat_b": "mat2"}.get(key, key): value
        for key, value in (dict(zip(names, args, strict=False)) | dict(kwargs)).items()
    }
    left, right, offsets = arguments.get("self"), arguments.get("mat2"), arguments.get("offs")
    if not is_known(left) or not is_known(right):
        return  # the kernel checks these itself
    shapes = f"{list(left.shape)} and {list(right.shape)}"
    if {left.dim(), right.dim()} - {2, 3} or not left.is_floating_point():
        raise MaterializeError(
            f"Expected 2-D or 3-D floating-point matrices, got shapes {shapes} and dtype "
            f"{left.dtype}."
        )
    if (left.dtype, left.device) != (right.dtype, right.device):
        raise MaterializeError(
            "Expected matrices of the same dtype and on the same device, got "
            f"{left.dtype} and {right.dtype}."
        )
    is_split_inside = left.dim() == right.dim() == 2
    if left.shape[-1] != right.shape[-2] or (
        left.dim() == right.dim() == 3 and left.shape[0] != right.shape[0]
    ):
        raise MaterializeError(
            f"Expected matrices with matching inner sizes and group counts, got shapes {shapes}."
        )
    if left.dim() == right.dim() == 3:
        if offsets is not None:
            raise MaterializeError("Expected no `offs` if both operands are 3-D.")
        return
    groups = None if is_split_inside else (left if left.dim() == 3 else right).shape[0]
    if (
        not isinstance(offsets, torch.Tensor)
        or offsets.dtype != torch.int32
        or offsets.dim() != 1
        or (is_known(offsets) and groups not in (None, offsets.shape[0]))
    ):
        raise MaterializeError("Expected `offs` to be a torch.int32 vector with one end per group.")


def is_known(tensor: Any) -> TypeGuard[torch.Tensor]:
    """Return whether a value is a tensor of known sizes."""
    return isinstance(tensor, torch.Tensor) and all(type(size) is int for size in tensor.shape)
