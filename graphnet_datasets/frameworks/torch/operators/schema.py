"""Keyword arguments of operators, from torch's schemas and signatures."""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable
from typing import Any

import torch

from ....errors import MaterializeError
from ....operators import OperatorNames
from ....sample import Op
from ....sample.targets import base_name
from . import Operator, resolve
from .words import words

_EVERY_FACTORY = words("device dtype layout memory_format out pin_memory requires_grad")
_NUMPY_SPELLINGS = {"dim": "axis", "keepdim": "keepdims", "self": "input"}
"""Spellings that torch's argument parser accepts besides the names in its schemas."""

_WITHOUT_SCHEMA = {
    "torch.Tensor.size": words("dim"),
    "torch.Tensor.stride": words("dim"),
    "torch.Tensor.type": words("dtype non_blocking"),
    "torch.Tensor.new_tensor": words("data") | _EVERY_FACTORY,
    "torch.Tensor.tolist": frozenset[str](),
    "torch.Tensor.requires_grad_": words("requires_grad"),
    "torch.tensor": words("data") | _EVERY_FACTORY,
    "torch.as_tensor": words("data") | _EVERY_FACTORY,
    "torch.lu": words("A pivot get_infos out"),
    "torch.unique": words("input sorted return_inverse return_counts dim"),
    "torch.nn.functional.logsigmoid": words("input"),
    "torch.sparse.sampled_addmm": words("input mat1 mat2 beta alpha out"),
    "torch.Tensor.repeat": words("repeats"),
    "torch.Tensor.permute": words("dims"),
    "torch.Tensor.dim_order": words("ambiguity_check"),
    "torch.Tensor.nonzero": words("as_tuple"),
    "torch.nonzero": words("input as_tuple out"),
}
_FACTORIES = OperatorNames("factory")
_CASTS = OperatorNames("cast")


def check_keywords(op: Op, operator: Operator) -> None:
    """Check that `op` uses only keywords that its operator accepts.

    Raises:
        MaterializeError: If it uses another keyword, or a reserved word of Python.
    """
    for name, _ in op.kwargs:
        accepted = keywords_of(operator)
        if name not in accepted or keyword.iskeyword(name):
            raise MaterializeError(
                f"`{operator.name}` does not accept the keyword `{name[:60]}` (accepted: "
                f"{', '.join(sorted(accepted)) or 'none'})."
            )


def is_factory(operator: Operator) -> bool:
    """Return whether an operator creates tensors on torch's default device unless given a device.

    >>> from . import lookup
    >>> is_factory(lookup("torch.arange")), is_factory(lookup("torch.ops.aten.full.default"))
    (True, True)
    >>> is_factory(lookup("torch.zeros_like")), is_factory(lookup("torch.ops.aten.arange.out"))
    (False, False)
    """
    if operator.kind != "function" or not operator.name.startswith("torch."):
        return False
    return base_name(operator.name) in _FACTORIES and "device" in keywords_of(operator)


@functools.lru_cache(maxsize=4096)
def keywords_of(operator: Operator) -> frozenset[str]:
    """Return the keywords that an operator accepts; Python's own operators accept none.

    >>> from . import lookup
    >>> "inplace" in keywords_of(lookup("torch.nn.functional.relu"))
    True
    """
    if operator.kind == "attribute" or not operator.name.startswith("torch."):
        return frozenset()
    if operator.name in _WITHOUT_SCHEMA:
        return _WITHOUT_SCHEMA[operator.name]
    last = operator.last_name
    if operator.kind == "method" and last in _CASTS:
        return words("device memory_format non_blocking")
    target = resolve(operator)
    if isinstance(target, torch._ops.OpOverload):
        return frozenset(argument.name for argument in target._schema.arguments)
    if isinstance(target, torch._ops.OpOverloadPacket):
        names = (getattr(target, overload)._schema.arguments for overload in target.overloads())
        return frozenset(argument.name for arguments in names for argument in arguments)
    accepted = _of_signature(target) | _of_schemas(last)
    with_indices = getattr(torch.nn.functional, f"{last}_with_indices", None)
    if operator.name.startswith("torch.nn.functional.") and with_indices is not None:
        accepted |= _of_signature(with_indices)  # `return_indices` selects between the two
    return accepted


def _of_signature(target: Callable[..., Any]) -> frozenset[str]:
    if not inspect.isfunction(target):
        return frozenset()
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # a Python wrapper of a builtin, which has a schema instead
        return frozenset()
    by_keyword = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in by_keyword)


def _of_schemas(last: str) -> frozenset[str]:
    """Return the argument names of all ATen schemas that a builtin of this name may refer to."""
    names = set(_EVERY_FACTORY)
    for prefix in ("", "linalg_", "fft_", "special_", "_sparse_"):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{last}"):
            names.update(argument.name for argument in schema.arguments)
    names.update(alias for name, alias in _NUMPY_SPELLINGS.items() if name in names)
    return frozenset(names)
