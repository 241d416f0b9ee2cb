"""Lightweight tensor descriptions that replace fake tensors during a walk.

A fake tensor costs hundreds of microseconds per operator, almost all of it in Python. A `Form`
stores only the properties that a walk reads: shape, strides, dtype and storage. It is converted to
a fake tensor
when an operator has no rule in `rules`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

CPU = torch.device("cpu")

Sizes = tuple[int, ...]

MAX_ELEMENTS = 2**60
"""Larger tensors are left to torch, which raises its own error for impossible sizes."""

PLAIN_DTYPES = frozenset(
    (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex64, torch.complex128),
    )
)


class UnfitError(Exception):
    """A tensor that no `Form` can represent; the caller falls back to fake tensors."""


class Storage:
    """Memory shared by one or more forms, identified by `key` while it is alive.

    `base` is the tensor it was created from, or the first fake tensor allocated in it, if any.
    """

    __slots__ = ("base", "key", "num_bytes")

    def __init__(self, num_bytes: int, base: torch.Tensor | None = None) -> None:
        self.num_bytes = num_bytes
        self.base = base
        self.key = id(self) if base is None else base.untyped_storage()._cdata


class Form:
    """A strided CPU tensor without elements.

    Raises:
        UnfitError: If the tensor is too large or its dtype is not in `PLAIN_DTYPES`.
    """

    __slots__ = ("dtype", "fake", "is_contiguous", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        shape: Sizes,
        strides: Sizes | None,
        dtype: torch.dtype,
        storage: Storage | None = None,
        offset: int = 0,
    ) -> None:
        size = math.prod(shape)
        if size > MAX_ELEMENTS or dtype not in PLAIN_DTYPES:
            raise UnfitError
        plain = contiguous_strides(shape)
        is_plain = strides is None or strides == plain
        self.shape = shape
        self.strides = plain if strides is None else strides
        self.dtype = dtype
        self.offset = offset
        self.fake: torch.Tensor | None = None
        self.is_contiguous = is_plain or _is_contiguous(shape, self.strides)
        if storage is None:
            reach = size if is_plain or size == 0 else _reach(shape, self.strides)
            storage = Storage(reach * dtype.itemsize)
        self.storage = storage

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    def with_view(self, shape: Sizes, strides: Sizes, offset: int = 0) -> Form:
        """Return a view of this form that starts `offset` elements later in its storage."""
        return Form(shape, strides, self.dtype, self.storage, self.offset + offset)


class Scalar:
    """A zero-dimensional tensor with a known element, as a tensor (`real`) and a `number`.

    Scalars are graph inputs or results of `scalar_rules`. `fake` is the fake tensor created when an
    operator without a rule uses the scalar. From then on only `fake` has the current element.

    Raises:
        UnfitError: If the tensor has dimensions or its dtype is not in `PLAIN_DTYPES`.
    """

    __slots__ = ("dtype", "fake", "number", "real", "shape", "storage")

    def __init__(self, real: torch.Tensor) -> None:
        if real.shape or real.dtype not in PLAIN_DTYPES:
            raise UnfitError
        self.real = real
        self.number = real.item()
        self.dtype = real.dtype
        self.shape: Sizes = ()
        self.storage = Storage(real.dtype.itemsize)
        self.fake: torch.Tensor | None = None

    def numel(self) -> int:
        """Return the number of elements."""
        return 1

    def to_form(self) -> Form:
        """Return the equivalent `Form`, dropping the known element."""
        return Form((), None, self.dtype)


def form_of(fake: Any, storages: dict[int, Storage]) -> Any:
    """Convert a fake tensor, or a tuple or list of fake tensors, to forms.

    Values with elements, and values other than strided CPU tensors of known size, are returned
    unchanged. `storages` maps storage addresses of fake tensors to `Storage` objects.
    """
    kind = type(fake)
    if kind is tuple or kind is list:
        return kind(form_of(item, storages) for item in fake)
    if kind is not FakeTensor or fake.constant is not None or fake.layout is not torch.strided:
        return fake
    shape, strides = tuple(fake.shape), tuple(fake.stride())
    offset = fake.storage_offset()
    if (
        fake.device != CPU
        or fake.is_conj()
        or fake.is_neg()
        or fake.requires_grad
        or fake.is_quantized
        or not all(type(size) is int for size in (*shape, *strides, offset))
    ):
        return fake
    memory = fake.untyped_storage()
    num_bytes = memory.nbytes()
    if type(num_bytes) is not int:
        return fake
    storage = storages.get(memory._cdata) or Storage(num_bytes, fake)
    try:
        form = Form(shape, strides, fake.dtype, storage, offset)
    except UnfitError:
        return fake
    storages[memory._cdata] = storage
    form.fake = fake
    return form


def fake_of(form: Form, storages: dict[int, Storage]) -> torch.Tensor:
    """Return the fake tensor of a form; forms that share a storage share its memory.

    Raises:
        RuntimeError: If torch cannot create such a tensor.
    """
    if form.fake is None:
        storage = form.storage
        reach = _reach(form.shape, form.strides) * form.dtype.itemsize
        if storage.base is None and form.offset == 0 and reach == storage.num_bytes:
            form.fake = torch.empty_strided(form.shape, form.strides, dtype=form.dtype)
            storage.base = form.fake
            storages[form.fake.untyped_storage()._cdata] = storage
            return form.fake
        if storage.base is None:
            base = torch.empty(storage.num_bytes // form.dtype.itemsize, dtype=form.dtype)
            storage.base = base
            storages[base.untyped_storage()._cdata] = storage
        base = storage.base
        if base.dtype != form.dtype:
            base = base.as_strided((storage.num_bytes // base.dtype.itemsize,), (1,), 0)
            base = base.view(form.dtype)
        form.fake = base.as_strided(form.shape, form.strides, form.offset)
    return form.fake


@functools.lru_cache(maxsize=4096)
def contiguous_strides(shape: Sizes) -> Sizes:
    """Return the strides of a contiguous tensor.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def view_strides(form: Form, shape: Sizes) -> Sizes | None:
    """Return the strides of a view with another shape, or None if the reshape needs a copy.

    Leading axes with unchanged sizes keep their strides. The remaining axes are merged into
    contiguous blocks, and the blocks are split into the new sizes.

    >>> view_strides(Form((2, 3, 4), None, torch.float32), (6, 2, 2))
    (4, 2, 1)
    >>> view_strides(Form((3, 2), (1, 3), torch.float32), (6,)) is None
    True
    """
    if form.strides == contiguous_strides(form.shape):
        return contiguous_strides(shape)
    num_kept = 0
    for size, new_size in zip(form.shape, shape, strict=False):
        if size != new_size:
            break
        num_kept += 1
    blocks: list[tuple[int, int]] = []  # (size, stride) of each contiguous block
    for size, step in zip(form.shape[num_kept:], form.strides[num_kept:], strict=True):
        if blocks and blocks[-1][1] == size * step:
            blocks[-1] = (blocks[-1][0] * size, step)
        elif size != 1:
            blocks.append((size, step))
    if not blocks and num_kept and num_kept == len(form.shape):
        blocks.append((1, form.shape[-1] * form.strides[-1]))
    strides: list[int] = []
    left, step = blocks.pop() if blocks else (1, 1)
    inner = 1
    for size in reversed(shape[num_kept:]):
        if size != 1 and inner == left:
            if not blocks:
                return None
            left, step = blocks.pop()
            inner = 1
        strides.append(step * inner)
        inner *= size
        if left % inner:
            return None
    if inner != left or blocks:
        return None
    return (*form.strides[:num_kept], *reversed(strides))


def map_forms(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested arguments with `change` applied to each `Form` and `Scalar`."""
    kind = type(value)
    if kind is Form or kind is Scalar:
        return change(value)
    if kind is tuple or kind is list:
        return kind([map_forms(item, change) for item in value])
    if kind is dict:
        return {key: map_forms(item, change) for key, item in value.items()}
    return value


def _reach(shape: Sizes, strides: Sizes) -> int:
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def _is_contiguous(shape: Sizes, strides: Sizes) -> bool:
    """Return whether strides are contiguous, ignoring axes of size 1."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True
