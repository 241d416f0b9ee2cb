"""Rules for tensors created from sizes alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .forms import CPU, Form, Scalar, Sizes, UnfitError
from .rule_operands import are_numbers, given, sizes_of
from .scalar_rules import make_scalar


def _made(shape: Sizes, default: torch.dtype, options: Mapping[str, Any]) -> Form:
    """Return a new form; options other than a dtype and the CPU device are rejected."""
    dtype = default
    for name, value in options.items():
        if name == "dtype" and type(value) in (torch.dtype, type(None)):
            dtype = default if value is None else value
        elif name not in ("device", "requires_grad") or value not in (None, False, CPU):
            raise UnfitError
    if min(shape, default=1) < 1:
        raise UnfitError
    return Form(shape, None, dtype)


def _shape_of(sizes: tuple[Any, ...]) -> Sizes:
    is_scalar = len(sizes) == 1 and type(sizes[0]) in (tuple, list, torch.Size) and not sizes[0]
    return () if is_scalar else sizes_of(sizes)


def filled(*sizes: Any, **options: Any) -> Form:
    """Return the form of `zeros`, `ones` or `empty`."""
    if not sizes and "size" in options:
        sizes = (options.pop("size"),)
    return _made(_shape_of(sizes), torch.get_default_dtype(), options)


def full(size: Any, fill_value: Any, **options: Any) -> Form:
    """Return the form of `full`."""
    kinds = {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}
    if type(fill_value) not in kinds:
        raise UnfitError
    return _made(_shape_of((size,)), kinds[type(fill_value)], options)


def new(input: Any, *sizes: Any, **options: Any) -> Form:
    """Return the form of `new_zeros` and similar methods."""
    return _made(_shape_of(sizes), given(input).dtype, options)


def new_full(input: Any, size: Any, fill_value: Any, **options: Any) -> Form:
    """Return the form of `new_full`."""
    if type(fill_value) not in (bool, int, float):
        raise UnfitError
    return _made(_shape_of((size,)), given(input).dtype, options)


def like(input: Any, **options: Any) -> Form:
    """Return the form of `zeros_like` and similar functions."""
    form = given(input)
    if not form.is_contiguous:
        raise UnfitError
    return _made(form.shape, form.dtype, options)


def full_like(input: Any, fill_value: Any, **options: Any) -> Form:
    """Return the form of `full_like`."""
    if type(fill_value) not in (bool, int, float):
        raise UnfitError
    return like(input, **options)


def arange(*bounds: Any, **options: Any) -> Form:
    """Return the form of `arange` with integer bounds."""
    if "end" in options:
        bounds = (options.pop("start", 0), options.pop("end"), options.pop("step", 1))
    if not 1 <= len(bounds) <= 3 or not are_numbers(*bounds) or float in map(type, bounds):
        raise UnfitError
    start, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else 1
    if step == 0:
        raise UnfitError
    return _made((len(range(start, end, step)),), torch.int64, options)


def linspace(start: Any, end: Any, steps: Any, **options: Any) -> Form:
    """Return the form of `linspace`."""
    if not are_numbers(start, end) or type(steps) is not int:
        raise UnfitError
    return _made((steps,), torch.get_default_dtype(), options)


def tensor(data: Any, **options: Any) -> Form | Scalar:
    """Return a tensor made from a number, or from an empty list as in key-value caches."""
    if type(data) in (bool, int, float):
        return make_scalar(data, **options)
    if type(data) is not list or data or set(options) - {"dtype", "device"}:
        raise UnfitError
    _made((1,), torch.get_default_dtype(), options)
    return Form((0,), None, options.get("dtype") or torch.get_default_dtype())
