"""Rules of `rules` for tensors of one element without axes: known ones, and others beside them.

Masks of language models are made of such: `(1.0 - mask) * torch.tensor(-3.4e38)`. What follows from
known elements alone is computed, as fake tensors do it, since a size may be made of it. Beside a
tensor with axes only the dtype of one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..operators import lookup, resolve
from .forms import CPU, Scalar, UnfitError
from .live_memory import tensors_in

COMPUTED = frozenset(
    (
        "operator.add", "operator.sub", "operator.mul", "operator.truediv", "operator.neg",
        "operator.pow", "torch.add", "torch.sub", "torch.mul", "torch.div", "torch.neg",
        "torch.Tensor.add", "torch.Tensor.sub", "torch.Tensor.mul", "torch.Tensor.div",
        "torch.sqrt", "torch.Tensor.sqrt", "torch.rsqrt", "torch.Tensor.rsqrt", "torch.exp",
        "torch.Tensor.exp", "torch.log", "torch.Tensor.log", "torch.abs", "torch.Tensor.abs",
        "torch.Tensor.pow", "torch.pow", "torch.Tensor.floor", "torch.Tensor.to",
        "torch.Tensor.float", "torch.Tensor.half", "torch.Tensor.bfloat16", "torch.Tensor.double",
        "torch.Tensor.long", "torch.Tensor.int", "torch.Tensor.bool", "torch.Tensor.type_as",
    )
)  # fmt: skip
"""Operators on single elements that write to none, whose results are known where operands are."""

BESIDE_OTHERS = frozenset(
    (
        "operator.add", "operator.sub", "operator.mul", "operator.truediv", "torch.add",
        "torch.sub", "torch.mul", "torch.div", "torch.Tensor.add", "torch.Tensor.sub",
        "torch.Tensor.mul", "torch.Tensor.div", "operator.iadd", "operator.isub", "operator.imul",
        "operator.itruediv", "torch.Tensor.add_", "torch.Tensor.sub_", "torch.Tensor.mul_",
        "torch.Tensor.div_", "torch.max", "torch.maximum", "torch.min", "torch.minimum",
        "torch.where", "torch.Tensor.masked_fill",
    )
)  # fmt: skip
"""Operators that make new memory, or write to the first operand, which is no such tensor then."""


def make_scalar(data: Any, dtype: Any = None, device: Any = None) -> Scalar:
    """Return a number as a tensor, as `torch.tensor` makes it."""
    if type(data) not in (bool, int, float) or device not in (None, CPU):
        raise UnfitError
    if type(dtype) not in (torch.dtype, type(None)):
        raise UnfitError
    with torch._C._DisableTorchDispatch():
        return _known(lambda: torch.tensor(data, dtype=dtype))


def apply_to_scalars(
    name: str, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return what an operator gives some of whose operands, by position, are scalars.

    Raises:
        UnfitError: no rule covers the call.
    """
    if all(type(each) is Scalar for each in tensors_in(args)):
        return _compute(name, args, kwargs)
    is_written = name.endswith("_") or name.startswith("operator.i")
    if name not in BESIDE_OTHERS or (is_written and type(args[0]) is Scalar):
        raise UnfitError
    return rule(*[each.to_form() if type(each) is Scalar else each for each in args], **kwargs)


def _compute(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Scalar:
    """Return the result for known elements; one that something may have been written to is none."""
    if name not in COMPUTED or any(type(each) is Scalar and each.fake is not None for each in args):
        raise UnfitError
    reals = [each.real if type(each) is Scalar else each for each in args]
    with torch._C._DisableTorchDispatch():
        found = _known(lambda: resolve(lookup(name))(*reals, **kwargs))
    for each in args:
        if type(each) is Scalar and each.real is found.real:
            return each  # of its own dtype already: the same memory
    return found


def _known(make: Callable[[], Any]) -> Scalar:
    try:
        real = make()
    except Exception as error:  # what torch refuses, it refuses in its own words
        raise UnfitError from error
    if type(real) is not torch.Tensor:
        raise UnfitError
    return Scalar(real)
