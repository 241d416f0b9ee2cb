"""Operators and parts in one vocabulary, whatever their spelling and framework."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from graphnet_datasets.analysis.attributes import as_numbers
from graphnet_datasets.operators import OperatorEntry, OperatorValues, entries
from graphnet_datasets.sample import Input, Sample
from graphnet_datasets.sample.arguments import DictArg, ListArg, SliceArg, iterate_refs
from graphnet_datasets.sample.targets import base_name
from graphnet_datasets.sample.vocabulary import WEIGHT_ROLES
from graphnet_datasets.storage.mapping import digest_of

_CORE = OperatorValues("canonical")
_FREE_FAMILIES = frozenset({"creation", "queries", "state", "views"})
_SCOPES = ("torch._functorch.", "torch.amp.")
"""Markers of the scope of a transform or of autocast, which compute nothing."""


def find_operator(target: str) -> tuple[str, OperatorEntry | None]:
    """Return the name and the entry of an operator, or None without an entry.

    An in-place operator without an entry of its own has that of the other form.

    >>> find_operator("torch.Tensor.relu_")[0], find_operator("mine.op")
    ('relu', ('op', None))
    """
    name = base_name(target)
    entry = entries().get(name) or entries().get(name := name.rstrip("_"))
    return name, entry


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
    name, entry = find_operator(target)
    if entry is None:
        return () if target.startswith(_SCOPES) else (target,)
    core = _CORE.get(name)
    if core is None:
        return () if entry.family in _FREE_FAMILIES else (name,)
    return () if core == "0" else tuple(core.split("+"))


@dataclasses.dataclass(frozen=True, slots=True)
class CanonicalForm:
    """The computation of a part without its spelling.

    `operators` are the core operators of each call in order, and `digest` identifies them together
    with their data flow and the role, kind and rank of each input that they use.
    """

    operators: tuple[str, ...]
    digest: str


def canonical_form(sample: Sample) -> CanonicalForm:
    """Return the canonical form of a sample.

    Calls without core operators, such as views and casts, pass their first operand on. Numbers and
    shapes do not matter. The digest is the same for every order of the inputs.

    >>> from graphnet_datasets.sample import Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample.sample import Op
    >>> def silu(target, *size):
    ...     x = Input("input", Value("float32", (4, *size)))
    ...     return Sample("example/silu", "torch", "other", (x,), (Op(target, (Ref(0),)),), Ref(1))
    >>> forms = [canonical_form(silu("torch.nn.functional.silu", 2)),
    ...     canonical_form(silu("torch.ops.aten.silu.default", 3)),
    ...     canonical_form(silu("torch.nn.functional.silu"))]
    >>> forms[0].operators, forms[0] == forms[1], forms[0] == forms[2]
    (('sigmoid', 'mul'), True, False)
    """
    num_inputs = len(sample.inputs)
    places: dict[int, int] = {}
    values: dict[int, Any] = {}
    calls: list[Any] = []
    operators: list[str] = []

    def value_of(ref: int) -> Any:
        if ref >= num_inputs:
            return values[ref]
        return ("input", places.setdefault(ref, len(places)))

    for position, op in enumerate(sample.ops):
        core = core_operators(op.target)
        operands = tuple(value_of(ref) for ref in iterate_refs((op.args, op.kwargs)))
        if core:
            values[num_inputs + position] = ("call", len(calls))
            calls.append((core, operands))
            operators += core
        else:
            values[num_inputs + position] = operands[0] if operands else ("constant",)
    outputs = tuple(value_of(ref) for ref in iterate_refs(sample.outputs))
    inputs = [_describe(sample.inputs[ref]) for ref in places]
    return CanonicalForm(tuple(operators), digest_of((calls, outputs, inputs)))


def calling_convention(sample: Sample) -> str:
    """Return a hash that is equal for samples that one program can compute.

    They have the same inputs in order, except for sizes and precision, and the same calls, except
    for numeric arguments (`attributes_of`).
    """
    calls = [(base_name(op.target), _skeleton(op.args), _skeleton(op.kwargs)) for op in sample.ops]
    inputs = [_describe(item) for item in sample.inputs]
    return digest_of((sample.framework, inputs, calls, _skeleton(sample.outputs)))


def kind_of_dtype(dtype: str | None) -> str:
    """Return the kind of numbers of a dtype.

    >>> [kind_of_dtype(dtype) for dtype in ("bfloat16", "uint8", "bool", "complex64", None)]
    ['float', 'integer', 'bool', 'complex', 'unknown']
    """
    if dtype is None:
        return "unknown"
    if "float" in dtype or "complex" in dtype:
        return "float" if "float" in dtype else "complex"
    return "bool" if dtype == "bool" else "integer"


def _describe(item: Input) -> tuple[str, str, int]:
    role = "weight" if item.role in WEIGHT_ROLES else item.role
    return role, kind_of_dtype(item.value.dtype), len(item.value.shape or ())


def _skeleton(argument: Any) -> Any:
    """Return an argument with its numbers replaced by `#`."""
    if as_numbers(argument) is not None:
        return "#"
    if isinstance(argument, tuple):
        return tuple(map(_skeleton, argument))
    if isinstance(argument, ListArg):
        return tuple(map(_skeleton, argument.items))
    if isinstance(argument, DictArg):
        return tuple((key, _skeleton(item)) for key, item in argument.items)
    if isinstance(argument, SliceArg):
        parts = (argument.start, argument.stop, argument.step)
        return ("slice", *map(_skeleton, parts))
    return repr(argument)
