"""Rules for zero-dimensional tensors with known elements, alone or combined with other tensors.

Language models build masks from such scalars: `(1.0 - mask) * torch.tensor(-3.4e38)`. Results of
known elements are computed, as fake tensors do, because a size may depend on them. In combination
with a larger tensor, only the scalar's dtype matters.
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
    """Return the result of `torch.tensor` for a number."""
    if type(data) not in (bool, int, float) or device not in (None, CPU):
        raise UnfitError
    if type(dtype) not in (torch.dtype, type(None)):
        raise UnfitError
    with torch._C._DisableTorchDispatch():
        return _known(lambda: torch.tensor(data, dtype=dtype))


def apply_to_scalars(
    name: str, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return the result of an operator with at least one positional scalar operand.

    Raises:
        UnfitError: If no rule covers the call.
    """
    if all(type(tensor) is Scalar for tensor in tensors_in(args)):
        return _compute(name, args, kwargs)
    is_written = name.endswith("_") or name.startswith("operator.i")
    if name not in BESIDE_OTHERS or (is_written and type(args[0]) is Scalar):
        raise UnfitError
    return rule(*[arg.to_form() if type(arg) is Scalar else arg for arg in args], **kwargs)


def _compute(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Scalar:
    """Compute the result from known elements; reject scalars that may have been overwritten."""
    if name not in COMPUTED or any(type(arg) is Scalar and arg.fake is not None for arg in args):
        raise UnfitError
    reals = [arg.real if type(arg) is Scalar else arg for arg in args]
    with torch._C._DisableTorchDispatch():
        result = _known(lambda: resolve(lookup(name))(*reals, **kwargs))
    for arg in args:
        if type(arg) is Scalar and arg.real is result.real:
            return arg  # a conversion to the same dtype returns the same memory
    return result


def _known(make: Callable[[], Any]) -> Scalar:
    try:
        real = make()
    except Exception as error:  # the fallback raises torch's own message
        raise UnfitError from error
    if type(real) is not torch.Tensor:
        raise UnfitError
    return Scalar(real)
