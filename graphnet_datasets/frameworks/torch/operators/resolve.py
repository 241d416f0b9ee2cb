"""Conversion between operator table entries and callables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ....errors import UnknownOperatorError
from . import python
from .table import (
    ATEN_PREFIX,
    ATTRIBUTES,
    FOREACH,
    METHOD_PREFIX,
    METHODS,
    NAMESPACES,
    PRIMS_PREFIX,
    Kind,
    Operator,
    canonical,
    find_entry,
)


def resolve(operator: Operator) -> Callable[..., Any]:
    """Return the callable of a table entry; methods take the tensor as first argument.

    Raises:
        UnknownOperatorError: If the entry is not from the table, or the installed torch lacks it.

    >>> import torch
    >>> from .table import lookup
    >>> resolve(lookup("torch.Tensor.mul")) is torch.Tensor.mul
    True
    """
    entry = find_entry(operator.name)
    if entry is not operator and entry != operator:
        raise UnknownOperatorError(
            f"`{operator.name[:100]}` was not made by `lookup`; only entries of the operator table "
            "can be resolved."
        )
    return _resolve(operator.name, operator.kind)


@functools.lru_cache(maxsize=16384)
def _resolve(name: str, kind: Kind) -> Callable[..., Any]:
    import operator as python_operator

    if kind == "attribute":
        return python_operator.attrgetter(name.rpartition(".")[2])
    try:
        return _get(name)
    except (AttributeError, RuntimeError) as error:
        import torch

        raise UnknownOperatorError(
            f"`{name}` is in the operator table, but the installed torch {torch.__version__} has "
            "no operator of that name. Install the torch with which the sample was captured."
        ) from error


def _get(name: str) -> Callable[..., Any]:
    """Return the callable of a table name, all parts of which are in the reviewed lists."""
    for prefix in (ATEN_PREFIX, PRIMS_PREFIX):
        if name.startswith(prefix):
            packet, _, overload = name.removeprefix(prefix).partition(".")
            packet_object = getattr(_namespace(prefix[:-1]), packet)
            if not overload:
                return packet_object
            qualified = f"{prefix.split('.')[2]}::{packet}"
            if overload != "default":
                qualified += f".{overload}"
            if overload not in packet_object.overloads() or qualified not in dispatched_names():
                raise AttributeError(overload)
            return getattr(packet_object, overload)
    namespace, _, last = name.rpartition(".")
    return getattr(_namespace(namespace), last)


@functools.cache
def dispatched_names() -> frozenset[str]:
    """Return the overloads that compute on tensors, without TorchScript's list and str ones."""
    import torch

    return frozenset(torch._C._dispatch_get_all_op_names())


@functools.cache
def _namespace(name: str) -> Any:
    """Return the module or class of a namespace in the table."""
    import builtins
    import math
    import operator as python_operator

    import torch
    import torch._functorch.predispatch
    import torch._higher_order_ops
    import torch.amp.autocast_mode
    import torch.autograd.grad_mode
    import torch.nn.functional

    return {
        "torch": torch,
        "torch._C": torch._C,
        "torch._C._nn": torch._C._nn,  # type: ignore[attr-defined]
        "torch._functorch.predispatch": torch._functorch.predispatch,
        "torch.Tensor": torch.Tensor,
        "torch.amp.autocast_mode": torch.amp.autocast_mode,
        "torch.autograd.grad_mode": torch.autograd.grad_mode,
        "torch.fft": torch.fft,
        "torch.linalg": torch.linalg,
        "torch.nn.functional": torch.nn.functional,
        "torch.ops.aten": torch.ops.aten,
        "torch.ops.higher_order": torch.ops.higher_order,
        "torch.ops.prims": torch.ops.prims,
        "torch.sparse": torch.sparse,
        "torch.special": torch.special,
        "builtins": builtins,
        "math": math,
        "operator": python_operator,
    }[name]


def name_of(target: Callable[..., Any] | str) -> str:
    """Return the canonical name of a callable, or of a tensor method given by name.

    Raises:
        UnknownOperatorError: If the table has no entry for it.

    >>> import torch
    >>> name_of(torch.nn.functional.linear), name_of("view")
    ('torch.nn.functional.linear', 'torch.Tensor.view')
    """
    import torch

    if isinstance(target, str):
        return canonical(METHOD_PREFIX + target)
    if isinstance(target, torch._ops.OpOverload):
        namespace, _, packet = target._schema.name.partition("::")
        return canonical(f"torch.ops.{namespace}.{packet}.{target._overloadname}")
    if isinstance(target, torch._ops.OpOverloadPacket):
        return canonical("torch.ops." + target._qualified_op_name.replace("::", "."))
    try:
        name = _names_by_callable().get(target)
    except TypeError:
        name = None
    if name is None:
        module = getattr(target, "__module__", None) or ""
        written = f"{module}.{getattr(target, '__name__', type(target).__name__)}"
        return canonical(_PUT_IN_PLACE.get(written, written))
    return name


_PUT_IN_PLACE = {
    "torch_geometric.hash_tensor._new_index_select": "torch.index_select",
    "torch_geometric.hash_tensor._new_select": "torch.select",
}
"""Functions with which other libraries replace torch's when they are imported."""


@functools.cache
def _names_by_callable() -> dict[Callable[..., Any], str]:
    import torch

    names: dict[Callable[..., Any], str] = {}
    for name in all_names():
        try:
            names.setdefault(_get(name), canonical(name))
        except AttributeError:
            continue
    for attribute in ATTRIBUTES:
        getter = getattr(getattr(torch.Tensor, attribute, None), "__get__", None)
        if getter is not None:
            names[getter] = METHOD_PREFIX + attribute
    return names


def all_names() -> Iterator[str]:
    """Yield all names of the table, including function aliases, without attributes and ATen."""
    for namespace, lasts in NAMESPACES.items():
        yield from (f"{namespace}.{last}" for last in sorted(lasts))
    yield from (f"torch.{last}" for last in sorted(FOREACH))
    yield from sorted(python.STATE)
    yield from (METHOD_PREFIX + last for last in sorted(METHODS))
    for last in ("_max_pool1d", "_max_pool2d", "_max_pool3d", "_threshold"):
        yield f"torch.nn.functional.{last}"
