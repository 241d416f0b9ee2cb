"""Calls as data to calls of torch, and back."""

from __future__ import annotations

import random
from typing import Any

import torch

from .elements import elements
from .specs import Call, Named, Tensor

_KINDS = {
    torch.dtype: "dtype",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}


class NotPlainError(Exception):
    """An argument is of a kind that no row can hold."""


def make(value: Any, chance: random.Random) -> Any:
    """Return the argument that `value` describes."""
    if isinstance(value, Tensor):
        return make_tensor(value, chance)
    if isinstance(value, Named):
        return torch.device("cpu") if value.kind == "device" else getattr(torch, value.name)
    if isinstance(value, list | tuple):
        return type(value)(make(item, chance) for item in value)
    return value


def make_tensor(spec: Tensor, chance: random.Random) -> torch.Tensor:
    """Return a tensor of torch with the elements and the layout that `spec` asks for."""
    tensor = torch.from_numpy(elements(spec, chance)).clone()
    tensor = tensor.to(getattr(torch, spec.dtype))
    if spec.layout == "strided" and tensor.dim():
        tensor = torch.stack([tensor, tensor], -1)[..., 0]
    elif spec.layout == "expanded" and tensor.dim() and 0 not in tensor.shape:
        tensor = tensor[:1].expand(tensor.shape)
    elif spec.layout == "transposed" and tensor.dim() > 1:
        tensor = tensor.transpose(0, -1).contiguous().transpose(0, -1)
    return tensor


def describe(value: Any) -> Any:
    """Return the data that describes an argument of torch.

    Raises:
        NotPlainError: no row could hold it.
    """
    if isinstance(value, torch.Tensor):
        return _describe_tensor(value)
    if value is None or value is Ellipsis or type(value) in (bool, int, float, str, complex):
        if value is Ellipsis:
            raise NotPlainError
        return value
    if type(value) in (list, tuple, torch.Size):
        items = [describe(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, torch.device):
        return Named("device", "cpu")
    for kind, name in _KINDS.items():
        if isinstance(value, kind):
            return Named(name, str(value).removeprefix("torch."))
    raise NotPlainError


def _describe_tensor(tensor: torch.Tensor) -> Tensor:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
        raise NotPlainError
    if tensor.numel() > 4000 or tensor.is_quantized or tensor.device.type != "cpu":
        raise NotPlainError
    shape = tuple(tensor.shape)
    if dtype in ("float32", "float64", "float16", "bfloat16", "complex64", "complex128"):
        return Tensor(dtype, shape)
    if dtype not in ("int64", "int32", "int16", "int8", "uint8", "bool"):
        raise NotPlainError
    if tensor.numel() <= 64:
        return Tensor(dtype, shape, "data", data=tuple(tensor.reshape(-1).tolist()))
    return Tensor(dtype, shape, "small")


def describe_call(name: str, args: Any, kwargs: dict[str, Any]) -> Call:
    """Return a call of torch as data."""
    return Call(name, tuple(map(describe, args)), {k: describe(v) for k, v in kwargs.items()})
