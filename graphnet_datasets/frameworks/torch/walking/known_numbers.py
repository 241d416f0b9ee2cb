"""Checks for required tensor operands and for numbers that must be known before a run.

Shapes are computed before a call, so a constant in the graph is bounded by the memory it would
take. A number computed at run time has no such bound. Most kernels check such numbers; the
operators listed here do not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ....errors import MaterializeError, UnknownOperatorError
from ....operators import OperatorNames
from ..operators import Operator, dispatched_names, is_checked, resolve
from ..operators.words import words

_ATEN = "torch.ops.aten."
_LARGEST = 2**31
_PADDING = OperatorNames("adds_paddings")

_LOOPS = OperatorNames("loops_by_number")

_STRIDED = OperatorNames("strided")

FOLLOWS_NONE = OperatorNames("reads_none")

_GIVES_NOTHING = words(
    """
    operator.setitem torch._assert torch._assert_async torch._assert_scalar
    torch._assert_tensor_metadata torch._check torch._check_index torch._check_is_size
    torch._check_tensor_all torch._check_type torch._check_value torch._constrain_as_size
    torch.Tensor.__setitem__ torch.sym_constrain_range torch.sym_constrain_range_for_size
    """
)


def why_unknown(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return why a call with unknown numbers may not run even in isolation, or "" if it may.

    >>> from ..operators import lookup
    >>> why_unknown(lookup("torch.repeat_interleave"), (torch.ones(2), 3), {})
    ''
    >>> why_unknown(lookup("torch.repeat_interleave"), (torch.ones(2), torch.ones(2)), {})
    'uses numbers that are known only at run time'
    """
    last = _packet(operator) or operator.last_name
    if last == "embedding_bag":
        offsets = args[2] if len(args) > 2 else kwargs.get("offsets")
        return "" if offsets is None else "takes bounds of bags on trust"
    if last == "repeat_interleave":
        numbers: list[Any] = [args[1] if len(args) > 1 else kwargs.get("repeats", args)]
    elif last in _PADDING | _LOOPS | _STRIDED or (last == "pad" and _is_mirroring(args, kwargs)):
        # The first operand may be followed by a scattered tensor, whose elements bound nothing.
        behind = 2 if last == "as_strided_scatter" else 1
        named = {key: value for key, value in kwargs.items() if key not in ("input", "self", "src")}
        numbers = [*args[behind:], *named.values()]
    else:
        return ""
    is_known = all(map(_is_known, _leaves(numbers)))
    return "" if is_known else "uses numbers that are known only at run time"


def _is_mirroring(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    mode = args[2] if len(args) > 2 else kwargs.get("mode", "constant")
    return mode != "constant"


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        else:
            yield value


def _is_known(value: Any) -> bool:
    if type(value) is int:
        return -_LARGEST < value < _LARGEST
    return value is None or type(value) in (float, bool, str)


def check_tensors_are_given(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Check that required tensor operands of a checked ATen operator are not None.

    ATen converts None to an undefined tensor. Public functions reject it; some kernels crash.

    Raises:
        MaterializeError: If a required tensor is None.
    """
    if not operator.name.startswith(_ATEN) or not is_checked(operator):
        return
    by_name, by_position = _required(operator)
    arguments = [(name, arg) for name, arg in kwargs.items() if name in by_name]
    arguments += [(name, arg) for name, arg in zip(by_position, args, strict=False) if name]
    for name, arg in arguments:
        is_list = isinstance(arg, list | tuple)
        if arg is None or (is_list and any(item is None for item in arg)):
            raise MaterializeError(f"Expected `{name}` to be a tensor, got None.")


@functools.lru_cache(maxsize=4096)
def _required(operator: Operator) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names and positions of arguments that are tensors in every overload."""
    overloads = _overloads(operator)
    required: set[str] = set()
    other_names: set[str] = set()
    places: dict[int, str] = {}
    open_places: set[int] = set()
    for overload in overloads:
        for place, argument in enumerate(overload._schema.arguments):
            if str(argument.type) in ("Tensor", "List[Tensor]"):
                required.add(argument.name)
                places.setdefault(place, argument.name)
            else:
                other_names.add(argument.name)
                open_places.add(place)
    last = max(places, default=-1)
    by_position = [
        "" if place in open_places else places.get(place, "") for place in range(last + 1)
    ]
    return frozenset(required - other_names), tuple(by_position)


@functools.lru_cache(maxsize=4096)
def gives_nothing(operator: Operator) -> bool:
    """Return whether an operator always returns None.

    >>> from ..operators import lookup
    >>> gives_nothing(lookup("torch.ops.aten._assert_async.default"))
    True
    """
    if operator.name in _GIVES_NOTHING:
        return True
    if not operator.name.startswith(_ATEN):
        return False
    overloads = _overloads(operator)
    return bool(overloads) and all(not overload._schema.returns for overload in overloads)


def _overloads(operator: Operator) -> list[Any]:
    """Return the dispatched overloads that an ATen operator may refer to."""
    try:
        target: Any = resolve(operator)
    except UnknownOperatorError:
        return []
    if not isinstance(target, torch._ops.OpOverloadPacket):
        return [target]
    overloads = [getattr(target, name) for name in target.overloads()]
    return [overload for overload in overloads if overload.name() in dispatched_names()]


def _packet(operator: Operator) -> str:
    if operator.name.startswith(_ATEN):
        return operator.name.removeprefix(_ATEN).partition(".")[0]
    return ""
