"""Operators in one vocabulary, whatever their spelling and framework."""

from __future__ import annotations

import functools

from graphnet_datasets.operators import OperatorValues, entries
from graphnet_datasets.sample.targets import base_name

_CORE = OperatorValues("canonical")
_FREE_FAMILIES = frozenset({"creation", "queries", "state", "views"})
_SCOPES = ("torch._functorch.", "torch.amp.")
"""Markers of the scope of a transform or of autocast, which compute nothing."""


@functools.cache
def core_operators(target: str) -> tuple[str, ...]:
    """Return the core operators that a call of an operator consists of.

    Views, casts, constants, dropout and markers of scopes have no core operators. An operator
    without an entry, such as a custom operator, is its own core operator.

    >>> core_operators("torch.nn.functional.linear"), core_operators("paddle._C_ops.matmul")
    (('mm',), ('mm',))
    >>> core_operators("torch.nn.functional.silu"), core_operators("paddle._C_ops.swish")
    (('sigmoid', 'mul'), ('sigmoid', 'mul'))
    >>> core_operators("torch.Tensor.view"), core_operators("torch.ops.aten.add_.Tensor")
    ((), ('add',))
    """
    name = base_name(target)
    entry = entries().get(name) or entries().get(name := name.rstrip("_"))
    if entry is None:
        return () if target.startswith(_SCOPES) else (target,)
    core = _CORE.get(name)
    if core is None:
        return () if entry.family in _FREE_FAMILIES else (name,)
    return () if core == "0" else tuple(core.split("+"))
