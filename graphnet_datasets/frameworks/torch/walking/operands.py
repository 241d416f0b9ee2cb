"""Operand checks for kernels that do not check sizes themselves.

The checks run on fake tensors before the graph runs. For example, `aten.native_batch_norm` accesses
one statistic per input channel without a bounds check; `torch.batch_norm` compares the sizes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ....errors import MaterializeError
from ..operators import Operator
from . import fused_layers
from .gradient_operands import check_gradient_operands, is_guarded
from .known_numbers import FOLLOWS_NONE, check_tensors_are_given
from .recurrent import kind_of, read_call
from .stride_blind import check_strides, ignores_strides

_ATEN = "torch.ops.aten."


def is_trusting(operator: Operator) -> bool:
    """Return whether the operator's kernel uses operand sizes without checking them."""
    return (
        _is_batch_norm(operator)
        or _packet(operator) in ("native_group_norm", "_weight_norm", fused_layers.LAYER)
        or is_guarded(_packet(operator))
        or ignores_strides(operator)
        or kind_of(operator.name) is not None
    )


def why_guessed(operator: Operator) -> str:
    """Return why an operator may not use operands with guessed sizes, or "" if it may.

    >>> from ..operators import lookup
    >>> why_guessed(lookup("torch.lstm")), why_guessed(lookup("torch.add"))
    ('does not check sizes that are known only at run time', '')
    """
    is_following = _packet(operator) in FOLLOWS_NONE
    return (
        "does not check sizes that are known only at run time"
        if is_following or is_trusting(operator)
        else ""
    )


def check_operands(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check operand sizes that the kernel itself does not check.

    Raises:
        MaterializeError: If the sizes do not match.

    >>> from ..operators import lookup
    >>> check_operands(lookup("torch.relu"), (torch.ones(2),), {})
    """
    check_tensors_are_given(operator, args, kwargs)
    if _is_grouped(operator):
        fused_layers.check_grouped_products(args, kwargs)
    if ignores_strides(operator):
        check_strides(operator, args, kwargs)
    if not is_trusting(operator) or operator.packet_name in ("median", "nanmedian"):
        return
    if kind_of(operator.name) is not None:
        read_call(operator.name, args, kwargs)
        return
    if is_guarded(_packet(operator)):
        check_gradient_operands(_packet(operator), args, kwargs)
        return
    if _packet(operator) == fused_layers.LAYER:
        fused_layers.check_encoder_layer(args, kwargs)
        return
    tensors = [
        operand for operand in (*args, *kwargs.values()) if isinstance(operand, torch.Tensor)
    ]
    if not tensors or not isinstance(args[0] if args else None, torch.Tensor):
        raise MaterializeError("Expected the first operand to be the input tensor.")
    if _is_batch_norm(operator):
        _check_channels(tensors)
        _check_statistics(_packet(operator), args, kwargs)
    elif _packet(operator) == "_weight_norm":
        _check_norms(args, kwargs, tensors)
    else:
        _check_groups(args, kwargs, tensors)


def _check_channels(tensors: list[torch.Tensor]) -> None:
    shape = tensors[0].shape
    channels = shape[1] if len(shape) > 1 else 0
    for tensor in tensors[1:]:
        if not fused_layers.is_known(tensor) or tensor.numel() != channels:
            raise MaterializeError(
                f"Expected weights and statistics of {channels} elements, one per channel, got "
                f"{tensor.numel()}."
            )


def _check_statistics(packet: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check that running statistics are present unless batch statistics are computed."""
    names = ["input", "weight", "bias", "running_mean", "running_var", "training"]
    if len(args) + len(kwargs) == 6 and "no_training" not in packet:
        names = ["input", "weight", "bias", "training"]  # overload `no_stats`
    arguments = dict(zip(names, args, strict=False)) | dict(kwargs)
    is_training = "no_training" not in packet and arguments.get("training") is True
    statistics = (arguments.get("running_mean"), arguments.get("running_var"))
    if not is_training and not all(isinstance(statistic, torch.Tensor) for statistic in statistics):
        raise MaterializeError(
            "Expected `running_mean` and `running_var` to be tensors when `training` is False."
        )


def _check_norms(
    args: Sequence[Any], kwargs: Mapping[str, Any], tensors: list[torch.Tensor]
) -> None:
    weight = tensors[0]
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    rank = weight.dim()
    if type(dim) is not int or not -1 <= dim < rank or len(tensors) != 2:
        raise MaterializeError(
            f"Expected two tensors and `dim` in [-1, {rank}), got {len(tensors)} tensors and {dim}."
        )
    norms = tuple(size if axis == dim else 1 for axis, size in enumerate(weight.shape))
    if dim == -1:
        norms = ()
    if tuple(tensors[1].shape) != norms or 0 in weight.shape:
        raise MaterializeError(
            f"Expected norms of shape {list(norms)} for non-empty weights of shape "
            f"{list(weight.shape)}, got {list(tensors[1].shape)}."
        )


def _check_groups(
    args: Sequence[Any], kwargs: Mapping[str, Any], tensors: list[torch.Tensor]
) -> None:
    names = ("input", "weight", "bias", "N", "C", "HxW", "group", "eps")
    arguments = dict(zip(names, args, strict=False)) | dict(kwargs)
    sizes = [arguments.get(name) for name in ("N", "C", "HxW", "group")]
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise MaterializeError(
            "Expected `N`, `C`, `HxW` and `group` to be non-negative integers that are known "
            "before the run."
        )
    batch, channels, pixels, groups = (int(size or 0) for size in sizes)
    if (
        batch * channels * pixels != tensors[0].numel()
        or groups == 0
        or channels % groups
        or any(tensor.numel() != channels for tensor in tensors[1:])
    ):
        raise MaterializeError(
            "Expected `N`, `C` and `HxW` to be the sizes of the input, and `group` to divide `C`, "
            f"got {batch}, {channels}, {pixels} and {groups}."
        )


def _is_batch_norm(operator: Operator) -> bool:
    packet = _packet(operator)
    return "batch_norm" in packet and packet not in ("batch_norm", "_batch_norm_impl_index")


def _is_grouped(operator: Operator) -> bool:
    return (_packet(operator) or operator.last_name) in fused_layers.PRODUCTS


def _packet(operator: Operator) -> str:
    if operator.name.startswith(_ATEN):
        return operator.name.removeprefix(_ATEN).partition(".")[0]
    namespace, _, last = operator.name.rpartition(".")
    return last if namespace == "torch" else ""
