"""Calls as data to calls of torch, and back."""

from __future__ import annotations

import math
import random
from typing import Any

import torch

from .elements import elements
from .layouts import SMALLEST, contiguous_strides, strides_of
from .specs import Call, Named, Tensor

_KINDS = {
    torch.dtype: "dtype",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}


class NotPlainError(Exception):
    """An argument is of a kind that no row can hold."""


LAYOUTS = ("plain", "channels_last", "conjugated", "gradient", "alias", *SMALLEST)
"""How operands lie in memory; `alias` is another view of the memory of the operand before it."""

_ALIGNMENT_BYTES = 64
"""What torch's allocator aligns a storage to: as many bytes may follow its last element."""


class Maker:
    """Makes the arguments of one call; operands that are one `Tensor` may be one tensor."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_sharing = chance.random() < 0.3
        self.made: dict[int, torch.Tensor] = {}
        self.last: torch.Tensor | None = None

    def make(self, value: Any) -> Any:
        """Return the argument that `value` describes."""
        if isinstance(value, Tensor):
            return self._make_tensor(value)
        if isinstance(value, Named):
            return torch.device("cpu") if value.kind == "device" else getattr(torch, value.name)
        if isinstance(value, list | tuple):
            return type(value)([self.make(item) for item in value])
        return value

    def _make_tensor(self, spec: Tensor) -> torch.Tensor:
        known = self.made.get(id(spec)) if self.is_sharing else None
        if known is None:
            known = _alias(self.last, spec) if spec.layout == "alias" else None
            known = make_tensor(spec, self.chance) if known is None else known
            self.made[id(spec)] = known
        self.last = known
        return known


def make_tensor(spec: Tensor, chance: random.Random) -> torch.Tensor:
    """Return a tensor of torch with the elements and the layout that `spec` asks for."""
    tensor = torch.from_numpy(elements(spec, chance)).to(getattr(torch, spec.dtype), copy=True)
    if spec.layout == "plain":
        return tensor
    if spec.layout == "gradient":
        is_able = tensor.is_floating_point() or tensor.is_complex()
        return tensor.requires_grad_() if is_able else tensor
    if spec.layout == "conjugated":
        is_neg = tensor.dtype in (torch.float32, torch.float64)
        return torch._neg_view(tensor) if is_neg else tensor.conj()
    return _laid_out(tensor, spec.layout, chance) if tensor.dim() else tensor


def _laid_out(tensor: torch.Tensor, layout: str, chance: random.Random) -> torch.Tensor:
    if layout == "channels_last" and tensor.dim() in (4, 5):
        is_flat = tensor.dim() == 4
        return tensor.to(
            memory_format=torch.channels_last if is_flat else torch.channels_last_3d  # type: ignore[arg-type]
        )
    if 0 in tensor.shape:
        return tensor
    return flush(tensor, strides_of(tuple(tensor.shape), layout, chance))


def flush(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor with these strides whose last element ends where its storage's page ends.

    Of elements that share a place in memory one is kept.
    """
    reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, strides, strict=True))
    step = max(1, _ALIGNMENT_BYTES // tensor.element_size())
    offset = -reach % step
    storage = torch.zeros(offset + reach, dtype=tensor.dtype)
    source = tensor.reshape(-1)[:reach]
    storage[offset : offset + len(source)] = source
    return storage.as_strided(tuple(tensor.shape), strides, offset)


def _alias(last: torch.Tensor | None, spec: Tensor) -> torch.Tensor | None:
    """Return a view of the shape asked for that begins at the second element of `last`."""
    if last is None or last.is_conj() or last.is_neg() or last.requires_grad:
        return None
    room = last.untyped_storage().nbytes() // last.element_size()
    size = math.prod(spec.shape)
    return (
        last.as_strided(spec.shape, contiguous_strides(spec.shape), 1) if 0 < size < room else None
    )


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
