"""Checks of which operators may run in the caller's process, before anything is built."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import torch

from ....errors import MaterializeError, UncheckedOperatorError, UnknownOperatorError
from ....sample import Op, Sample
from ....sample.arguments import Arg, DictArg, ListArg, Named, Ref
from ..operators import Operator, is_checked, resolve
from .entries import custom_operator_of, entries_of

_ATEN = "torch.ops.aten."
_WITHOUT_CONSTANTS = frozenset((Ref, int, float, bool, type(None)))
_QUANTIZED = frozenset({"quint8", "qint8", "qint32"})
_ENUMERATED = {"ScalarType": "dtype", "Layout": "layout", "MemoryFormat": "memory_format"}
"""Enumerations that ATen takes as plain integers and uses as indices without a bounds check."""


def check_operators(sample: Sample, *, allow_unchecked_operators: bool) -> None:
    """Check that a sample only calls checked operators, on operands that they check.

    Raises:
        UncheckedOperatorError: If it calls an unchecked operator, or creates sparse or quantized
            tensors, and `allow_unchecked_operators` is false.
        MaterializeError: If a dtype, layout or memory format is passed as another type.
    """
    for position, (op, operator) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        if custom_operator_of(sample, op) is not None:
            continue
        if not allow_unchecked_operators:
            reason = why_unchecked(op, operator)
            if reason:
                raise UncheckedOperatorError(refusal(_place(sample, position), reason))
        if operator.name.startswith(_ATEN):
            check_call_constants(op, operator, _place(sample, position))
    if not allow_unchecked_operators:
        for name, graph_input in zip(sample.input_names, sample.inputs, strict=True):
            if graph_input.value.dtype in _QUANTIZED:
                raise UncheckedOperatorError(
                    refusal(f"Input `{name}` of `{sample.id}`", "is a quantized tensor")
                )
    for body in sample.iterate_bodies():
        check_operators(body, allow_unchecked_operators=allow_unchecked_operators)


def _place(sample: Sample, position: int) -> str:
    return f"Op {position} (`{sample.ops[position].target}`) of `{sample.id}`"


def why_unchecked(op: Op, operator: Operator) -> str:
    """Return why a call may not run in the caller's process, or "" if it may.

    >>> from ..operators import lookup
    >>> why_unchecked(Op("torch.relu"), lookup("torch.relu"))
    ''
    >>> why_unchecked(Op("torch._fused_sgd_"), lookup("torch.ops.aten._fused_sgd_"))
    'is not one of the checked operators'
    """
    if not is_checked(operator):
        return "is not one of the checked operators"
    if any(named.kind == "layout" and named.name != "strided" for named in _constants(op)):
        return "makes a sparse tensor, whose indices nobody checks"
    for key, arg in op.kwargs:
        if key in ("sparse_grad", "sparse") and arg is not False:
            return "makes a sparse tensor, whose indices nobody checks"
        if key == "out" and arg is not None:
            return "writes to an operand that it may resize"
    return ""


def refusal(where: str, reason: str) -> str:
    """Return the message of an `UncheckedOperatorError`."""
    return (
        f"{where} {reason}: invalid operands could corrupt the memory of this process. Pass "
        "`allow_unchecked_operators=True` if you trust the sample, or leave it to `graphnet run` "
        "and `graphnet validate`, which run samples in separate processes."
    )


def _constants(op: Op) -> Iterator[Named]:
    pending: list[Arg] = [arg for arg in op.args if type(arg) not in _WITHOUT_CONSTANTS]
    if op.kwargs:
        pending += [arg for _, arg in op.kwargs]
    while pending:
        arg = pending.pop()
        if isinstance(arg, Named):
            yield arg
        elif isinstance(arg, tuple):
            pending += arg
        elif isinstance(arg, ListArg):
            pending += arg.items
        elif isinstance(arg, DictArg):
            pending += [item for _, item in arg.items]


def check_call_constants(op: Op, operator: Operator, where: str) -> None:
    """Check that dtypes, layouts and memory formats of an ATen call are constants of that kind.

    Raises:
        MaterializeError: If one is a number, string or tensor; the message begins with `where`.
    """
    if not operator.name.startswith(_ATEN):
        return
    by_name, by_position = _enumerated(operator)
    arguments: list[tuple[str, Arg]] = list(op.kwargs)
    arguments += [(by_position[i], arg) for i, arg in enumerate(op.args) if i in by_position]
    for name, arg in arguments:
        kind = by_name.get(name)
        if kind and isinstance(arg, (Ref, bool, int, float, complex, str)):
            raise MaterializeError(f"{where} has a `{name}` that is not a {kind} of torch.")


@functools.lru_cache(maxsize=4096)
def _enumerated(operator: Operator) -> tuple[dict[str, str], dict[int, str]]:
    """Return the enumerated arguments of an ATen operator, by name and by position.

    A position counts only if no overload takes a number or tensor there.
    """
    try:
        target = resolve(operator)
    except UnknownOperatorError:
        return {}, {}
    if isinstance(target, torch._ops.OpOverloadPacket):
        schemas = [getattr(target, overload)._schema for overload in target.overloads()]
    else:
        schemas = [target._schema]  # type: ignore[attr-defined]
    by_name: dict[str, str] = {}
    by_position: dict[int, str] = {}
    other_positions: set[int] = set()
    for schema in schemas:
        for position, argument in enumerate(schema.arguments):
            kind = _kind_of(str(argument.real_type))
            if kind:
                by_name[argument.name] = kind
                by_position.setdefault(position, argument.name)
            elif not argument.kwarg_only:
                other_positions.add(position)
    return by_name, {
        place: name for place, name in by_position.items() if place not in other_positions
    }


def _kind_of(type_name: str) -> str | None:
    return next((kind for sign, kind in _ENUMERATED.items() if sign in type_name), None)
