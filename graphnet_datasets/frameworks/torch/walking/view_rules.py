"""Rules for operators that return views, and for indexing and reshaping."""

from __future__ import annotations

import math
from typing import Any

import torch

from .forms import Form, Sizes, UnfitError, view_strides
from .rule_operands import (
    axis_of,
    broadcast,
    given,
    sizes_of,
)

MAX_PARTS = 4096
"""Maximum number of results of a rule; calls with more results are left to torch."""


def transpose(input: Any, dim0: Any, dim1: Any) -> Form:
    """Return the view with two axes swapped."""
    form = given(input)
    order = list(range(len(form.shape)))
    first, second = axis_of(form, dim0), axis_of(form, dim1)
    order[first], order[second] = order[second], order[first]
    return _ordered(form, order)


def permute(input: Any, *dims: Any) -> Form:
    """Return the view with its axes in another order."""
    form = given(input)
    order = [axis_of(form, dim) for dim in sizes_of(dims)]
    if sorted(order) != list(range(len(form.shape))):
        raise UnfitError
    return _ordered(form, order)


def _ordered(form: Form, order: list[int]) -> Form:
    shape, strides = form.shape, form.strides
    return form.with_view(
        tuple(shape[axis] for axis in order), tuple(strides[axis] for axis in order)
    )


def view(input: Any, *sizes: Any) -> Form:
    """Return the view of another shape; refuse shapes that need a copy."""
    form = given(input)
    shape = _filled(form, sizes_of(sizes))
    strides = view_strides(form, shape)
    if strides is None:
        raise UnfitError
    return form.with_view(shape, strides)


def reshape(input: Any, *sizes: Any) -> Form:
    """Return the form of another shape: a view if the strides allow it, else a copy."""
    form = given(input)
    shape = _filled(form, sizes_of(sizes))
    strides = view_strides(form, shape)
    return Form(shape, None, form.dtype) if strides is None else form.with_view(shape, strides)


def _filled(form: Form, shape: Sizes) -> Sizes:
    """Return a shape with its single -1, if any, replaced by the inferred size."""
    if -1 in shape:
        rest = -math.prod(shape)
        if shape.count(-1) > 1 or rest <= 0 or form.numel() % rest:
            raise UnfitError
        shape = tuple(form.numel() // rest if size == -1 else size for size in shape)
    if min(shape, default=1) < 1 or math.prod(shape) != form.numel():
        raise UnfitError
    return shape


def flatten(input: Any, start_dim: Any = 0, end_dim: Any = -1) -> Form:
    """Return the form with some axes merged into one."""
    form = given(input)
    first, last = axis_of(form, start_dim), axis_of(form, end_dim)
    if first >= last:
        raise UnfitError
    merged = math.prod(form.shape[first : last + 1])
    return reshape(form, *form.shape[:first], merged, *form.shape[last + 1 :])


def unsqueeze(input: Any, dim: Any) -> Form:
    """Return the view with an axis of size 1 inserted."""
    form = given(input)
    rank = len(form.shape)
    if type(dim) is not int or not -rank - 1 <= dim <= rank:
        raise UnfitError
    axis = dim % (rank + 1)
    step = form.shape[axis] * form.strides[axis] if axis < rank else 1
    return form.with_view(
        (*form.shape[:axis], 1, *form.shape[axis:]),
        (*form.strides[:axis], step, *form.strides[axis:]),
    )


def expand(input: Any, *sizes: Any) -> Form:
    """Return the view whose axes of size 1 are repeated with stride 0."""
    form = given(input)
    shape = sizes_of(sizes)
    extra = len(shape) - len(form.shape)
    if extra < 0 or (extra > 0 and -1 in shape[:extra]):
        raise UnfitError
    strides = [0] * extra
    new_shape = list(shape[:extra])
    for size, old_size, step in zip(shape[extra:], form.shape, form.strides, strict=True):
        if size in (-1, old_size):
            new_shape.append(old_size)
            strides.append(step)
        elif old_size == 1 and size > 1:
            new_shape.append(size)
            strides.append(0)
        else:
            raise UnfitError
    if min(new_shape, default=1) < 1:
        raise UnfitError
    return form.with_view(tuple(new_shape), tuple(strides))


def expand_as(input: Any, other: Any) -> Form:
    """Return the view expanded to the shape of another tensor."""
    return expand(input, *given(other).shape)


def view_as(input: Any, other: Any) -> Form:
    """Return the view in the shape of another tensor."""
    return view(input, given(other).shape)


def reshape_as(input: Any, other: Any) -> Form:
    """Return the form in the shape of another tensor."""
    return reshape(input, given(other).shape)


def squeeze(input: Any, dim: Any = None) -> Form:
    """Return the view without axes of size 1."""
    form = given(input)
    axes = range(len(form.shape)) if dim is None else (axis_of(form, dim),)
    axes_left = [axis for axis, size in enumerate(form.shape) if size != 1 or axis not in axes]
    return _ordered(form, axes_left)


def turn(input: Any) -> Form:
    """Return the transposed view of a matrix."""
    form = given(input)
    if len(form.shape) != 2:
        raise UnfitError
    return _ordered(form, [1, 0])


def take_slice(input: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1) -> Form:
    """Return the view of a slice of an axis."""
    form = given(input)
    axis = axis_of(form, dim)
    return getitem(form, (*[slice(None)] * axis, slice(start, end, step)))


def setitem(input: Any, index: Any, value: Any) -> None:
    """Check an assignment to part of a tensor."""
    form = given(input)
    if form.storage.base is not None:  # a fake tensor in this storage may have known elements
        raise UnfitError
    part = getitem(form, index)
    if type(value) in (int, float, bool):
        return
    source = given(value)
    if source.dtype != form.dtype:
        raise UnfitError
    if expand(source, *part.shape).shape != part.shape:
        raise UnfitError


def getitem(value: Any, index: Any) -> Any:
    """Return the form of a subscript: an element of a sequence, or a part of a tensor."""
    if type(value) in (tuple, list):
        if type(index) is not int or not -len(value) <= index < len(value):
            raise UnfitError
        return value[index]
    form = given(value)
    if type(index) is Form:
        return _picked(form, [given(index)])
    if type(index) is tuple and index and all(type(part) is Form for part in index):
        return _picked(form, [given(part) for part in index])
    parts = list(index) if type(index) is tuple else [index]
    if Ellipsis in [part for part in parts if type(part) in (type(Ellipsis),)]:
        place = next(position for position, part in enumerate(parts) if part is Ellipsis)
        used = sum(part is not None and part is not Ellipsis for part in parts)
        parts[place : place + 1] = [slice(None)] * (len(form.shape) - used)
    shape: list[int] = []
    strides: list[int] = []
    offset = axis = 0
    for part in parts:
        if part is None:
            if axis < len(form.shape):
                strides.append(form.shape[axis] * form.strides[axis])
            else:
                strides.append(1)
            shape.append(1)
            continue
        if axis >= len(form.shape):
            raise UnfitError
        size, step = form.shape[axis], form.strides[axis]
        axis += 1
        if type(part) is int:
            if not -size <= part < size:
                raise UnfitError
            offset += (part % size) * step
        elif type(part) is slice:
            bounds = (part.start, part.stop, part.step)
            if any(type(bound) not in (int, type(None)) for bound in bounds):
                raise UnfitError
            if part.step is not None and part.step < 1:
                raise UnfitError
            first, last, by = part.indices(size)
            count = len(range(first, last, by))
            if count < 1:
                raise UnfitError
            offset += first * step
            shape.append(count)
            strides.append(step * by)
        else:
            raise UnfitError
    return form.with_view((*shape, *form.shape[axis:]), (*strides, *form.strides[axis:]), offset)


def _picked(form: Form, places: list[Form]) -> Form:
    """Return the form of indexing the leading axes with index tensors."""
    if len(places) > len(form.shape) or not form.is_contiguous:
        raise UnfitError
    shape: Sizes = ()
    for index in places:
        if not index.shape or index.dtype not in (torch.int64, torch.int32):
            raise UnfitError
        if not index.is_contiguous:
            raise UnfitError
        shape = broadcast(shape, index.shape)
    return Form((*shape, *form.shape[len(places) :]), None, form.dtype)


def split(tensor: Any, split_size_or_sections: Any, dim: Any = 0) -> tuple[Form, ...]:
    """Return the views that split an axis by part sizes."""
    form = given(tensor)
    axis = axis_of(form, dim)
    size = form.shape[axis]
    if type(split_size_or_sections) is int:
        part = split_size_or_sections
        if part < 1 or size > part * MAX_PARTS:
            raise UnfitError
        counts = [min(part, size - start) for start in range(0, size, part)]
    elif type(split_size_or_sections) in (tuple, list):
        counts = list(split_size_or_sections)
        if any(type(count) is not int or count < 1 for count in counts) or sum(counts) != size:
            raise UnfitError
    else:
        raise UnfitError
    return _parts(form, axis, counts)


def chunk(input: Any, chunks: Any, dim: Any = 0) -> tuple[Form, ...]:
    """Return the views that split an axis into a number of parts."""
    form = given(input)
    axis = axis_of(form, dim)
    if type(chunks) is not int or not 1 <= chunks <= MAX_PARTS:
        raise UnfitError
    return split(form, -(-form.shape[axis] // chunks), axis)


def unbind(input: Any, dim: Any = 0) -> tuple[Form, ...]:
    """Return the views of the slices along an axis."""
    form = given(input)
    axis = axis_of(form, dim)
    if form.shape[axis] > MAX_PARTS:
        raise UnfitError
    shape = (*form.shape[:axis], *form.shape[axis + 1 :])
    strides = (*form.strides[:axis], *form.strides[axis + 1 :])
    return tuple(
        form.with_view(shape, strides, place * form.strides[axis])
        for place in range(form.shape[axis])
    )


def _parts(form: Form, axis: int, counts: list[int]) -> tuple[Form, ...]:
    views = []
    start = 0
    for count in counts:
        shape = (*form.shape[:axis], count, *form.shape[axis + 1 :])
        views.append(form.with_view(shape, form.strides, start * form.strides[axis]))
        start += count
    return tuple(views)


def meshgrid(*tensors: Any, indexing: Any = None) -> tuple[Form, ...]:
    """Return the views of one-dimensional tensors, expanded to a grid."""
    if len(tensors) == 1 and type(tensors[0]) in (tuple, list):
        tensors = tuple(tensors[0])
    forms = [given(tensor) for tensor in tensors]
    if indexing != "ij" or not forms or any(len(form.shape) != 1 for form in forms):
        raise UnfitError
    if any(form.dtype != forms[0].dtype for form in forms):
        raise UnfitError
    shape = tuple(form.shape[0] for form in forms)
    rank = len(shape)
    grids = []
    for axis, form in enumerate(forms):
        column = (1,) * axis + form.shape + (1,) * (rank - axis - 1)
        grids.append(expand(view(form, column), shape))
    return tuple(grids)


def detach(input: Any) -> Form:
    """Return the view detached from autograd."""
    form = given(input)
    return form.with_view(form.shape, form.strides)
