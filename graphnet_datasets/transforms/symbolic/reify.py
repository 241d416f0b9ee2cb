"""Replacement of the symbols of a graph by sizes."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import SampleError, SymbolError, TransformError, raises_only
from ...frameworks.input_limits import check_inputs
from ...inputs import resize_elements
from ...sample import Input, Op, Sample, Value
from ...sample.arguments import Ref, map_refs
from ...sample.symbols import evaluate

_RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@raises_only(TransformError)
def reify(
    sample: Sample,
    sizes: Mapping[str, int] | None = None,
    *,
    memory_limit_bytes: int | None = None,
) -> Sample:
    """Return the graph at the given sizes of its symbols, as if captured at these sizes.

    Symbols missing in `sizes` have the size of the capture. Stored elements are cut or repeated
    along each axis, like in `make_inputs`. Arguments that were expressions become numbers, and
    symbols are no longer inputs. The id ends with the sizes (`/batch=4+sequence=64`).

    Raises:
        SampleError: a symbol is unknown, or sizes violate its range or the constraints.
        MemoryLimitError: inputs other than weights need more than `memory_limit_bytes` (default:
            the memory of this machine).

    >>> from graphnet_datasets.sample import Symbol
    >>> whole = Sample("example/flat", "torch", "other",
    ...     (Input("input", Value("float32", ("batch", 4, 6))),
    ...      Input("symbol", Value("int64", ()), source_name="batch")),
    ...     (Op("torch.Tensor.view", (Ref(0), Ref(1), 24)),), Ref(2), (Symbol("batch", 2, 1, 64),))
    >>> large = reify(whole, {"batch": 16})
    >>> large.id, large.inputs[0].value.shape, large.ops[0].args
    ('example/flat/batch=16', (16, 4, 6), (Ref(index=0), 16, 24))
    """
    full = complete_sizes(sample, sizes or {})
    # Weights keep their size and are not copied here.
    check_inputs(sample, full, memory_limit_bytes, with_weights=False)
    removed = {
        index: evaluate(input_value.source_name, full)
        for index, input_value in enumerate(sample.inputs)
        if input_value.role == "symbol"
    }
    places: dict[int, int] = {}
    for index in range(len(sample.inputs) + sample.num_ops):
        if index not in removed:
            places[index] = len(places)

    def renumber(ref: int) -> Any:
        return removed[ref] if ref in removed else Ref(places[ref])

    def reified(op: Op) -> Op:
        results = op.results
        return dataclasses.replace(
            op,
            args=map_refs(op.args, renumber),
            kwargs=map_refs(op.kwargs, renumber),
            results=None if results is None else tuple(_at(result, full) for result in results),
        )

    names = "+".join(f"{name}={size}" for name, size in full.items())
    return dataclasses.replace(
        sample,
        id=f"{sample.id}/{names}" if names else sample.id,
        inputs=tuple(
            _input(sample, input_value, full)
            for index, input_value in enumerate(sample.inputs)
            if index not in removed
        ),
        ops=tuple(map(reified, sample.ops)),
        outputs=map_refs(sample.outputs, renumber),
        symbols=(),
        constraints=(),
        provenance=dataclasses.replace(sample.provenance, parent_id=sample.id),
    )


def complete_sizes(sample: Sample, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return a size for each symbol of a sample, in the order of the symbols.

    Raises:
        SampleError: as `reify`.
    """
    unknown = sorted(set(sizes) - set(sample.hints))
    if unknown:
        names = ", ".join(sample.hints) or "none"
        raise SampleError(f"`{sample.id}` has no symbol `{unknown[0]}`. Its symbols are {names}.")
    full = {**sample.hints, **sizes}
    problem = find_misfit(sample, full)
    if problem:
        raise SampleError(f"`{sample.id}` cannot have {problem}. Choose another size.")
    return full


def find_misfit(sample: Sample, sizes: Mapping[str, int]) -> str:
    """Return a description of a violated range or constraint, or ""."""
    for symbol in sample.symbols:
        size = sizes[symbol.name]
        lower = 0 if symbol.lower is None else symbol.lower
        if type(size) is not int or size < lower:
            return f"`{symbol.name}` = {size!r}: it must be an integer of at least {lower}"
        if symbol.upper is not None and size > symbol.upper:
            return f"`{symbol.name}` = {size}: it must be at most {symbol.upper}"
    for constraint in sample.constraints:
        text = f"`{constraint.left} {constraint.relation} {constraint.right}`"
        try:
            sides = evaluate(constraint.left, sizes), evaluate(constraint.right, sizes)
        except SymbolError as error:
            return f"the sizes {dict(sizes)}: {text} has no value ({error})"
        if not _RELATIONS[constraint.relation](*sides):
            return f"the sizes {dict(sizes)}: they violate {text}"
    return ""


def _at(value: Value, sizes: Mapping[str, int]) -> Value:
    if value.shape is None:
        return value
    shape = tuple(evaluate(dim, sizes) for dim in value.shape)
    if min(shape, default=0) < 0:
        return Value(value.dtype)
    if value.stride is None:
        return Value(value.dtype, shape)
    return Value(value.dtype, shape, tuple(evaluate(dim, sizes) for dim in value.stride))


def _input(sample: Sample, input_value: Input, sizes: Mapping[str, int]) -> Input:
    value = _at(input_value.value, sizes)
    if input_value.role == "scalar" or input_value.data is None or value.shape is None:
        return dataclasses.replace(input_value, value=value)
    old_shape = sample.shape_of(input_value.value) or ()
    new_shape = sample.shape_of(input_value.value, sizes) or ()
    data = resize_elements(input_value.data, str(value.dtype), old_shape, new_shape)
    return dataclasses.replace(input_value, value=value, data=data)
