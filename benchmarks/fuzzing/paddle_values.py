"""Calls as data to calls of paddle, and back."""

from __future__ import annotations

import random
from typing import Any

import paddle

from .elements import elements
from .specs import Call, Named, Tensor
from .torch_values import NotPlainError

_KNOWN = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")


def make(value: Any, chance: random.Random) -> Any:
    """Return the argument that `value` describes."""
    if isinstance(value, Tensor):
        return make_tensor(value, chance)
    if isinstance(value, Named):
        return paddle.CPUPlace() if value.kind == "place" else vars(paddle)[value.name]
    if isinstance(value, list | tuple):
        return type(value)(make(item, chance) for item in value)
    return value


def make_tensor(spec: Tensor, chance: random.Random) -> paddle.Tensor:
    """Return a tensor of paddle with the elements and the layout that `spec` asks for."""
    array = elements(spec, chance)
    tensor = paddle.to_tensor(array, place=paddle.CPUPlace())
    if spec.dtype == "bfloat16":
        tensor = tensor.astype("bfloat16")
    if spec.layout == "transposed" and len(array.shape) > 1:
        order = [len(array.shape) - 1, *range(1, len(array.shape) - 1), 0]
        tensor = tensor.transpose(order).contiguous().transpose(order)
    return tensor


def describe(value: Any) -> Any:
    """Return the data that describes an argument of paddle.

    Raises:
        NotPlainError: no row could hold it, or it is too large for a call to start from.
    """
    if isinstance(value, paddle.Tensor):
        return _describe_tensor(value)
    if value is None or type(value) in (bool, int, float, str, complex):
        return value
    if type(value) in (list, tuple):
        items = [describe(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, paddle.base.core.Place | paddle.CPUPlace):
        return Named("place", "cpu")
    if isinstance(value, paddle.dtype):
        return Named("dtype", str(value).rpartition(".")[2])
    raise NotPlainError


def _describe_tensor(tensor: Any) -> Tensor:
    if not tensor._is_initialized() or not tensor.is_dense():
        raise NotPlainError
    dtype = str(tensor.dtype).rpartition(".")[2]
    shape = tuple(tensor.shape)
    if tensor.size > 4000:
        raise NotPlainError
    if dtype in _KNOWN:
        return Tensor(dtype, shape)
    if dtype not in _INTEGERS:
        raise NotPlainError
    if tensor.size <= 64:
        return Tensor(dtype, shape, "data", data=tuple(tensor.numpy().reshape(-1).tolist()))
    return Tensor(dtype, shape, "small")


def describe_call(name: str, args: Any) -> Call:
    """Return a call of paddle as data."""
    return Call(name, tuple(map(describe, args)))
