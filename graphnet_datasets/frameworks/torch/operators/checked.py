"""Operators that may run in any process, as determined by fuzzing.

An operator is *checked* if its kernel, or this library, validates sizes, indices and divisors, so
that no operands can make it access memory out of bounds or end the process. All other operators are
*unchecked*: they run in isolated processes, or where the caller of `materialize` allows it.
`benchmarks/fuzz_operators.py` decides: an operator that crashes there loses the fact `checked` or
gets a check in `walking/operands.py`. The fact covers all public names and in-place forms of an
operator, each of which was fuzzed. Names that begin with an underscore have the fact per namespace.
Backward kernels do not check operands; `walking/gradient_operands.py` does.
"""

from __future__ import annotations

import functools

from ....operators import OperatorNames
from .table import ATEN_PREFIX, METHOD_PREFIX, PRIMS_PREFIX, Operator
from .words import words

_CHECKED = OperatorNames("checked")
_UNCHECKED = OperatorNames("unchecked")
_WALKABLE = OperatorNames("walkable")

_PUBLIC = words(
    """
    torch torch.nn.functional torch._C._nn torch.linalg torch.fft torch.special
    torch.ops.higher_order
    """
)
_PYTHON = ("operator", "math", "builtins")


@functools.lru_cache(maxsize=16384)
def is_checked(operator: Operator) -> bool:
    """Return whether an operator may run in any process.

    >>> from .table import lookup
    >>> is_checked(lookup("torch.relu")), is_checked(lookup("torch.ops.aten._fused_adam_"))
    (True, False)
    """
    if operator.is_state or operator.kind == "attribute":
        return True
    name = operator.name
    namespace, _, last = name.rpartition(".")
    if namespace in _PYTHON:
        return True
    if name.startswith(PRIMS_PREFIX):
        return False
    if name.startswith(ATEN_PREFIX):
        last, _, overload = name.removeprefix(ATEN_PREFIX).partition(".")
        if overload.endswith("out") or _is_writing(operator, last):
            return False
        namespace, name = ATEN_PREFIX[:-1], ATEN_PREFIX + last
        last = last if last in _CHECKED else _without_room(last)
    elif namespace == METHOD_PREFIX[:-1]:
        if last.startswith("__") and last in _CHECKED:
            return True
    elif namespace not in _PUBLIC:
        return False
    if name in _CHECKED:
        return True
    if name in _UNCHECKED:
        return False
    if last.startswith("_"):
        return last in _CHECKED
    return (last[:-1] if last.endswith("_") else last) in _CHECKED


def is_walkable(operator: Operator) -> bool:
    """Return whether an operator may run on fake tensors in any process."""
    if is_checked(operator) or operator.name.startswith(PRIMS_PREFIX):
        return True
    name = operator.name
    if name.startswith(ATEN_PREFIX):
        name = ATEN_PREFIX + name.removeprefix(ATEN_PREFIX).partition(".")[0]
    return name in _WALKABLE


def _is_writing(operator: Operator, packet: str) -> bool:
    """Return whether an overload writes to a dedicated argument (`grad_input`, `values`)."""
    return operator.is_inplace and not packet.endswith("_")


def _without_room(packet: str) -> str:
    """Return the public name of ATen packets such as `linalg_norm`, `fft_rfft`, `special_expit`."""
    for room in ("linalg_", "fft_", "special_"):
        if packet.startswith(room):
            return packet.removeprefix(room)
    return packet
