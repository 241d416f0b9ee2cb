"""Cache of calls on fake tensors, keyed by operator, literals and operand forms.

Layers of a model repeat, and a call on fake tensors takes milliseconds, almost all of it in Python.
A repeated call only needs new fake tensors of the cached forms. Calls whose results share memory
with other tensors, or depend on elements, are not cached.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..operators import Operator
from .forms import MAX_ELEMENTS, PLAIN_DTYPES, Form
from .live_memory import tensors_in

_PLAIN = (
    bool, int, float, complex, str, type(None), type(Ellipsis), torch.dtype, torch.device,
    torch.layout, torch.memory_format,
)  # fmt: skip


MAX_REMEMBERED = 20_000
"""Maximum number of calls cached for the process; a full cache is cleared."""

_ALL_CALLS: dict[Hashable, Remembered] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Remembered:
    """The result of a call: its container type (None for a bare tensor), the form of each tensor,
    and the walk observer's records."""

    container: type | None
    forms: tuple[tuple[Any, ...], ...]
    noted: Any

    def make_forms(self) -> Any:
        """Return the result as forms; only for calls stored by `keep`."""
        results = [Form(shape, stride, dtype) for shape, stride, dtype, _ in self.forms]
        return results[0] if self.container is None else self.container(results)

    def make(self) -> Any:
        """Return the result as new fake tensors."""
        tensors = [
            torch.empty_strided(shape, stride, dtype=dtype, device=device)
            for shape, stride, dtype, device in self.forms
        ]
        return tensors[0] if self.container is None else self.container(tensors)


def recall(key: Hashable) -> Remembered | None:
    """Return the result of a call cached by an unobserved walk in this process, if any."""
    return _ALL_CALLS.get(key)


def keep(key: Hashable, call: Remembered | None) -> None:
    """Cache the result of a call for `recall`."""
    if call is not None and all(
        device.type == "cpu" and dtype in PLAIN_DTYPES and math.prod(shape) <= MAX_ELEMENTS
        for shape, _, dtype, device in call.forms
    ):
        if len(_ALL_CALLS) >= MAX_REMEMBERED:
            _ALL_CALLS.clear()
        _ALL_CALLS[key] = call


def forget_all() -> None:
    """Clear the cache of calls."""
    _ALL_CALLS.clear()


class _Unlike(Exception):  # noqa: N818 - a way out, not an error
    """An operand or result of a kind that is not cached."""


def key_of(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable | None:
    """Return the cache key of a call, or None if its result depends on more than operand forms."""
    if operator.is_inplace or operator.is_state:
        return None
    try:
        modes = torch.is_grad_enabled(), torch.get_default_dtype()
        return (operator.name, *modes, _form(args), _form(kwargs))
    except _Unlike:
        return None


def remember(args: Any, kwargs: Any, result: Any, noted: Any) -> Remembered | None:
    """Return a cacheable result, or None if it shares memory or has more than plain tensors."""
    container = None if isinstance(result, torch.Tensor) else type(result)
    tensors = [result] if container is None else result
    if container not in (None, tuple, list) or not tensors:
        return None
    used_storages = {_storage(tensor) for tensor in tensors_in((args, kwargs))}
    forms = []
    for tensor in tensors:
        if type(tensor) is not FakeTensor or tensor.constant is not None:
            return None
        try:
            shape, stride, dtype, device, offset, *rest = _tensor_form(tensor)
        except _Unlike:
            return None
        storage = _storage(tensor)
        if offset or any(rest) or storage in used_storages:
            return None
        reach = sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) + 1
        if 0 not in shape and tensor.untyped_storage().nbytes() != reach * tensor.itemsize:
            return None
        used_storages.add(storage)
        forms.append((shape, stride, dtype, device))
    return Remembered(container, tuple(forms), noted)


def _form(value: Any) -> Hashable:
    kind = type(value)
    if kind is Form:
        return (kind, value.shape, value.strides, value.dtype, value.offset)
    if kind is FakeTensor:
        if value.constant is not None:
            raise _Unlike
        return _tensor_form(value)
    if kind in (tuple, list):
        return (kind, *map(_form, value))
    if kind is dict:
        return (kind, *((name, _form(item)) for name, item in value.items()))
    if kind is slice:
        return (kind, _form(value.start), _form(value.stop), _form(value.step))
    if kind in _PLAIN:
        return (kind, value)
    raise _Unlike


def _tensor_form(tensor: torch.Tensor) -> tuple[Any, ...]:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise _Unlike
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    offset = tensor.storage_offset()  # a symbol if it depends on an element of an index tensor
    if not all(type(size) is int for size in (*shape, *stride, offset)):
        raise _Unlike
    return (
        shape,
        stride,
        tensor.dtype,
        tensor.device,
        offset,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.requires_grad,
    )


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return id(tensor)
