"""Rules of `rules` for tensors of one element without axes: known ones, and others beside them.

Masks of language models are made of such: `(1.0 - mask) * torch.tensor(-3.4e38)`. What follows from
known elements alone is computed, as fake tensors do it, since a size may be made of it. Beside a
tensor with axes only the dtype of one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ....operators import OperatorNames
from ..operators import lookup, resolve
from .forms import CPU, Scalar, UnfitError
from .live_memory import tensors_in

COMPUTED = OperatorNames("computed")

BESIDE_OTHERS = OperatorNames("beside")


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
